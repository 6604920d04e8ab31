"""Coin prices: ask marketplaces what a coin sells for, keep what they say once, and value the coin."""
