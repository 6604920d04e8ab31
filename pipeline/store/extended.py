"""The engine's migrations, and after them those of the application that is loaded."""

from __future__ import annotations

from sqlalchemy import Engine

from pipeline.declare.extension import extensions, load
from pipeline.store.migrate import alone, migrate


def migrate_all(engine: Engine) -> bool:
    """True if the engine's own schema changed. An application's migrations are one transaction each."""
    changed = migrate(engine)
    for extension in extensions():
        if extension.migrate is not None:
            with engine.begin() as connection:
                alone(connection)
                load(extension.migrate)(connection)
    return changed
