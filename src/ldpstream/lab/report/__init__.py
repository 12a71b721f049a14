"""Reports: one HTML file each, with everything in it."""
