"""The shop's own database package; the engine has one in its repository, too."""

from __future__ import annotations

import os

from sqlalchemy import Engine, create_engine


def connect() -> Engine:
    return create_engine(os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://", 1))
