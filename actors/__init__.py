"""The workflows that ship with the project: one folder a workflow, one file a phase."""
