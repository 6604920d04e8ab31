"""What jobs wait for, on the command line."""
