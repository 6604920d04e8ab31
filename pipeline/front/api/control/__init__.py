"""What operators change while jobs run, and the record of it."""
