"""The shared store: a PostgreSQL database that several collectors use at once."""
