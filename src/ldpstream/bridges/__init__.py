"""Bridges between a collector and fleets without HTTP. A bridge sees what the collector sees."""
