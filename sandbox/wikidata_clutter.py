"""All that the pretended Wikidata holds: what can be looked for, and what is found in its place."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from sandbox import wikidata_world as world
from sandbox.wikidata_entity import Entity, Statement

DISAMBIGUATION, CATEGORY, INTERNAL, FAMILY_NAME = "Q4167410", "Q4167836", "Q17442446", "Q101352"
FIRST = 990_001
# Each class with the classes above it, cut down from the real ones.
CLASSES = {
    "Q35120": ("entity", ""),
    "Q5": ("human", "Q35120"),
    "Q486972": ("human settlement", "Q35120"),
    "Q515": ("city", "Q486972"),
    "Q3957": ("town", "Q486972"),
    "Q43229": ("organization", "Q35120"),
    "Q4830453": ("business", "Q43229"),
    "Q38723": ("higher education institution", "Q43229"),
    "Q3918": ("university", "Q38723"),
    "Q11446": ("ship", "Q35120"),
    "Q47461344": ("written work", "Q35120"),
    "Q7725634": ("literary work", "Q47461344"),
    "Q355304": ("watercourse", "Q35120"),
    "Q4022": ("river", "Q355304"),
    FAMILY_NAME: ("family name", "Q35120"),
    DISAMBIGUATION: ("Wikimedia disambiguation page", INTERNAL),
    CATEGORY: ("Wikimedia category", INTERNAL),
    INTERNAL: ("Wikimedia internal item", ""),
}
FAMILIES = ("Ashcombe", "Blackwood", "Thornbury", "Fairweather", "Müllner")


@lru_cache(maxsize=1)
def entities() -> tuple[Entity, ...]:
    """Everything that has a page."""
    known = world.world()
    return (*map(_entity, known), *_classes(), *_pages(), *_merged(known))


def _entity(known: world.Known) -> Entity:
    claims = {"P31": (Statement(known.kind),)}
    for prop, date in (("P569", known.born), ("P570", known.died), ("P571", known.founded)):
        if date:
            # Every ninth date stands beside one that was found to be wrong.
            wrong = (Statement(str(int(date[:4]) + 6), "deprecated"),) if int(known.qid[1:]) % 9 == 0 else ()
            claims[prop] = (*wrong, Statement(date))
    return Entity(known.qid, known.labels, {"en": known.description}, known.aliases, claims)


def _classes() -> Iterator[Entity]:
    for qid, (name, above) in CLASSES.items():
        yield Entity(qid, {"en": name}, claims={"P279": (Statement(above),)} if above else {})


def _pages() -> Iterator[Entity]:
    """Pages that lead on to others, categories, and names as such: each is called as something that is looked for."""
    for place, family in enumerate(FAMILIES):
        of_kind = ((DISAMBIGUATION, family), (FAMILY_NAME, family), (CATEGORY, f"Category:{family}"))
        for step, (kind, name) in enumerate(of_kind):
            description = {"en": CLASSES[kind][0]}
            yield Entity(f"Q{FIRST + 10 * place + step}", {"en": name}, description, claims={"P31": (Statement(kind),)})
    for place, person in enumerate(world.NAMED_AFTER):
        page = {"P31": (Statement(DISAMBIGUATION),)}
        yield Entity(f"Q{FIRST + 100 + place}", {"en": person, "de": person}, claims=page)


def _merged(known: tuple[world.Known, ...]) -> Iterator[Entity]:
    """Every fortieth entity was once two."""
    for place, one in enumerate(known[::40]):
        yield Entity(f"Q{FIRST + 200 + place}", {"en": one.name}, merged_into=one.qid)
