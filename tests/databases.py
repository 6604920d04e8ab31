"""Databases for tests: each its own, or one that is put back after each test."""

from __future__ import annotations

from pipeline.store.testing.databases import Databases as Databases


class Lasting:
    """One database that is put back after each test; a test that changes the schema costs a new one."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases
        self.name = databases.new("lasting")

    def put_back(self) -> None:
        if not self._databases.put_back(self.name):
            self.name = self._databases.new("lasting")
