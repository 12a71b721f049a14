"""Subset selection: a report is a set of k labels, in which the true one is the most likely."""
