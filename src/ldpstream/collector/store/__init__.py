"""What a collector must not forget: a contract, and its implementation on SQLite."""
