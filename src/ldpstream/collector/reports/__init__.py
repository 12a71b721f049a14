"""Incoming reports: their layout, the verdict on each, and what counts them."""
