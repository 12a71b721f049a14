"""Streams: what the fleet's values really are, known only to the laboratory."""
