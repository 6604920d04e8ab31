"""Doors for people: command line, HTTP, dashboard."""
