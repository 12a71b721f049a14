"""Live statistics from a fleet of devices under w-event local differential privacy."""

__version__ = "0.1.0"
