"""Limits and breakers by name: what the code declares, what operators change, what calls tell."""
