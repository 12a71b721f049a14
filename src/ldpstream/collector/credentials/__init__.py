"""Secrets of the collector and what is derived from them: device keys and read tokens."""
