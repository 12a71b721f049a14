"""The way of reports from a request to the store."""
