"""Between a collector and fleets that do not speak HTTP. A bridge sees what the collector sees."""
