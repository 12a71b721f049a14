"""The versions of the schema that added something, which are the same in both stores."""

CHAINED = 4
"""The first version in which releases are chained."""
SUCCEEDED = 6
"""The first version in which terms may have successors."""
LOGGED = 7
"""The first version with an admin log."""
SUMMARISED = 9
"""The first version with summaries of what was pruned."""
