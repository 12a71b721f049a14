"""What fake devices can do to a round and to a stream, and what helps (docs/trust.md)."""
