"""The HTTP API under /v1 (docs/protocol.md)."""
