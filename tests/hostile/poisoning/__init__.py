"""What fake devices can do to a stream, and what helps (docs/trust.md)."""
