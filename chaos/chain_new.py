"""The same workflow with a phase more than in chain_old; both run side by side during a deploy."""

from __future__ import annotations

from chaos.workflow import work
from pipeline import Workflow

chain = Workflow("chaos-chain")
first = chain.phase("first")(work)
second = chain.phase("second")(work)
third = chain.phase("third")(work)
