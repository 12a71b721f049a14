"""Plans: what a stream will cost and how accurate it will be (docs/planning.md)."""
