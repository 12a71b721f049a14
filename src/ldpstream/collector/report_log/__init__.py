"""A durable log of accepted reports, which an engine counts where one store is not enough."""
