"""The laboratory: mechanisms on simulated fleets, measured against the truth."""
