"""Free post-processing: consistency, filters, intervals. None of it costs privacy."""
