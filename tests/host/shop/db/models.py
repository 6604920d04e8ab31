"""A print shop's tables. Three of them have names that the engine uses in its own schema or in its application."""

from __future__ import annotations

from sqlalchemy import ForeignKey, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """Everything that Alembic compares."""


class Project(Base):
    __tablename__ = "projects"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)


class PrintJob(Base):
    __tablename__ = "jobs"
    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"), index=True)
    copies: Mapped[int]
    status: Mapped[str] = mapped_column(server_default=text("'ordered'"))


class Task(Base):
    """A mail: how often its actor ran, and how often the shop's middleware saw it end."""

    __tablename__ = "tasks"
    name: Mapped[str] = mapped_column(primary_key=True)
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    signed: Mapped[int] = mapped_column(server_default=text("0"))


class Invoice(Base):
    __tablename__ = "invoices"
    __table_args__ = ({"schema": "billing"},)
    id: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("jobs.id"), unique=True)
    cents: Mapped[int]
    note: Mapped[str | None]
