"""What operators change while jobs run, and who did it."""
