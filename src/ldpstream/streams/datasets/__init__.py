"""Real data sets: one file each, and the table of them in `registry`."""
