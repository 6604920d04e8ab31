"""A workflow as it was before a phase was put into the middle of it: see chain_new."""

from __future__ import annotations

from chaos.workflow import work
from pipeline import Workflow

chain = Workflow("chaos-chain")
first = chain.phase("first")(work)
third = chain.phase("third")(work)
