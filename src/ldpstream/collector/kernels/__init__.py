"""Machine code for the hot path of ingestion."""
