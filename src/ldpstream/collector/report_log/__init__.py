"""Accepted reports as a log that an engine counts, where one store is not enough."""
