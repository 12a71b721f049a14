"""Alerts on releases: rules, their states, and the webhook that hears of changes."""
