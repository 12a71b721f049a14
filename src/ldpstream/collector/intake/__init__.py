"""The path of reports from a request to the store."""
