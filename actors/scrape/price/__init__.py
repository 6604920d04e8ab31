"""Reads a price as a marketplace shows it: amount, currency, quantity, or why it cannot be read."""
