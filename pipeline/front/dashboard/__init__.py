"""The dashboard: static files over the HTTP API, nothing else."""
