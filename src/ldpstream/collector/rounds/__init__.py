"""One stream's rounds: whom to ask, what devices are told, and what is released."""
