"""What the outside can see: logs, counters, metrics."""
