"""Pages that are empty without scripts, rendered by a real browser that reaches nothing but what it is given."""
