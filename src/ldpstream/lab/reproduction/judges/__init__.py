"""Judges: functions from data to a verdict, one for each claim of the paper."""
