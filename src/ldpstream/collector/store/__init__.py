"""The durable store of a collector: its contract, and implementations on SQLite and PostgreSQL."""
