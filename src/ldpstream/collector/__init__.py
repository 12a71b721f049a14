"""The collector: rounds over a network, a durable store, and an HTTP API."""
