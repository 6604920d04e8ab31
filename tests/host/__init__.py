"""A team that has an application of its own, and adopts the engine."""
