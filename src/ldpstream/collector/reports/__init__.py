"""Reports on their way in: their layout, what becomes of each, and what counts them."""
