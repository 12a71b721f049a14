"""Engines that count report logs: in one process, or on a Spark cluster."""
