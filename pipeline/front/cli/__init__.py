"""The pipeline command."""
