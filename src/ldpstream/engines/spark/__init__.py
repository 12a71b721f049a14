"""The engine on Spark Structured Streaming."""
