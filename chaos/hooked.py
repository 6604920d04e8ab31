"""What the hooks of a job must have done: each one job for the end that it had, and none for another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

Kind = Literal["lost", "duplicated", "unexplained"]


@dataclass(frozen=True)
class Hooked:
    """A job that has ended, of a workflow with hooks.

    ``wanted``: how many hooks this end has. ``told``: the ends that jobs were told of.
    """

    job: UUID
    status: str
    wanted: int
    told: Sequence[str]

    def wrong(self, refunded: bool) -> Iterator[tuple[Kind, str]]:
        """``refunded``: a poison pill whose crashes were given back has failed, and starts again."""
        told = self.told.count(self.status)
        if told != self.wanted:
            said = f"is {self.status}, and {told} jobs were told so by {self.wanted} hooks"
            yield "duplicated" if told > self.wanted else "lost", said
        others = {end for end in self.told if end != self.status}
        if others and not (refunded and others == {"failed"}):
            yield "unexplained", f"is {self.status}, and others were told that it is {', '.join(sorted(others))}"
