"""A mistake: an actor of the shop in a module of workflows, without a broker of its own."""

import dramatiq
from pipeline import Workflow

letters = Workflow("letters")


@dramatiq.actor
def newsletter() -> None:
    """It would be on the engine's broker."""
