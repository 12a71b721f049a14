"""Thousands of real devices in one process, for demonstrations, tests and measurements."""
