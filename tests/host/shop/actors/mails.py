"""An actor of the shop, on the shop's broker, with Dramatiq's own retries. ``dramatiq actors.mails`` runs it."""

from __future__ import annotations

import dramatiq
from sqlalchemy import text

from actors import engine

COUNT = text("""INSERT INTO tasks AS t (name, attempts) VALUES (:name, 1)
    ON CONFLICT (name) DO UPDATE SET attempts = t.attempts + 1 RETURNING attempts""")


@dramatiq.actor(queue_name="mails", max_retries=5, min_backoff=10, max_backoff=50)
def confirm(name: str) -> None:
    """The mail server takes every mail at the third attempt."""
    with engine.begin() as connection:
        attempts = connection.execute(COUNT, {"name": name}).scalar_one()
    if attempts < 3:
        raise ConnectionError("the mail server is busy")
