"""Mechanisms for streams with a trusted server, carried over to local reports (Remark 3)."""
