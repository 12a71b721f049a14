"""The embedded store: one SQLite file, one thread that writes to it."""
