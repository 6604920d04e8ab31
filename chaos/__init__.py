"""Faults under load, on real servers and real processes, and the books afterwards: see docs/reliability.md."""
