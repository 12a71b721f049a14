"""Which collector leads a stream, and when its streams act."""
