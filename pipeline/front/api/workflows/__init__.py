"""The workflows, over HTTP."""
