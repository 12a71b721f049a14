"""What Prometheus is told: how streams are doing, never who reported or what."""
