"""Commands about jobs: one, those that match, those that failed."""
