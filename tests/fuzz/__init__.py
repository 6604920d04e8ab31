"""Hostile input in large numbers: a small share in every test run, all of it with script/fuzz."""
