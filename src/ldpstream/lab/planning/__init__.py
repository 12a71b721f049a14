"""What a stream will cost and how good it will be, before there is one (docs/planning.md)."""
