"""What the promise rests on: exact epsilon, exact randomness, exact accounting."""
