"""Subset selection: a set of k labels, with the true one more likely in it than any other."""
