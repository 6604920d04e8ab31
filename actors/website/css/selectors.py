"""CSS selectors as values, and the elements that they are asked about while a page is read from its beginning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(eq=False)
class Element:
    """What a selector may ask for. ``before`` is the brother before it; places count from 1."""

    tag: str
    attributes: Mapping[str, str]
    parent: Element | None = None
    before: Element | None = None
    place: int = 1
    place_of_type: int = 1
    classes: frozenset[str] = frozenset()
    # so far, while the page is read
    last: Element | None = None
    types: dict[str, int] = field(default_factory=dict)

    @classmethod
    def below(cls, parent: Element | None, tag: str, attributes: Mapping[str, str]) -> Element:
        """The next element in ``parent``."""
        before = parent.last if parent else None
        element = cls(tag, attributes, parent, before, before.place + 1 if before else 1)
        element.classes = frozenset(attributes.get("class", "")[:2000].split())
        if parent is not None:
            parent.last = element
            element.place_of_type = parent.types[tag] = parent.types.get(tag, 0) + 1
        return element


Test = Callable[[Element, "Budget"], bool]


class Budget:
    """So many comparisons may be made; when they are used up, nothing matches any more."""

    def __init__(self, comparisons: int) -> None:
        self.left = comparisons

    def take(self) -> bool:
        """Whether there is one left."""
        self.left -= 1
        return self.left >= 0


@dataclass(frozen=True)
class Compound:
    """What one element must be, and how it stands to the one before in the selector."""

    combinator: str = " "
    tag: str = ""
    names: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()
    tests: tuple[Test, ...] = ()
    weight: int = 0

    def fits(self, element: Element, budget: Budget) -> bool:
        return (
            budget.take()
            and (not self.tag or self.tag == element.tag)
            and self.names <= element.classes
            and (not self.ids or self.ids == {element.attributes.get("id")})
            and all(test(element, budget) for test in self.tests)
        )


@dataclass(frozen=True)
class Selector:
    """Compounds from left to right."""

    compounds: tuple[Compound, ...]

    @property
    def weight(self) -> int:
        """Its specificity as one number."""
        return sum(compound.weight for compound in self.compounds)

    @property
    def key(self) -> str:
        """What an element must have for the selector to be asked at all."""
        last = self.compounds[-1]
        if last.ids:
            return "#" + next(iter(last.ids))
        return "." + next(iter(last.names)) if last.names else last.tag or "*"

    def fits(self, element: Element, budget: Budget) -> bool:
        """Whether the element is one that the selector means."""
        return self._fits(len(self.compounds) - 1, element, budget)

    def _fits(self, at: int, element: Element, budget: Budget) -> bool:
        compound = self.compounds[at]
        if not compound.fits(element, budget):
            return False
        return at == 0 or any(self._fits(at - 1, other, budget) for other in _related(compound.combinator, element))


def _related(combinator: str, element: Element) -> Iterator[Element]:
    """Those that stand to ``element`` as the combinator says, the nearest first."""
    if combinator in {"+", "~"}:
        other = element.before
        while other is not None:
            yield other
            other = other.before if combinator == "~" else None
    else:
        other = element.parent
        while other is not None:
            yield other
            other = other.parent if combinator == " " else None
