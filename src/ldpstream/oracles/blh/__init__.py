"""Binary local hashing: one bit of a hash of the value, randomised."""
