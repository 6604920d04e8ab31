"""The HTTP door: JSON under /v1, health, metrics."""
