"""Another mistake: a module of workflows that imports what sets the shop's broker."""

from pipeline import Workflow

import actors  # noqa: F401

letters = Workflow("letters")
