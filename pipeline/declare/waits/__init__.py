"""What may come after a phase, and what a job may wait for before it continues."""
