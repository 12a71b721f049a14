"""Promises of other kinds than ours, and what each costs on one stream (docs/promises.md)."""
