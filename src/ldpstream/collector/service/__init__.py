"""A running collector without HTTP: its streams, threads and store, put together."""
