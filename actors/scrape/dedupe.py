"""When are two listings the same? By the source's own id, else by a hash of what does not change. Pure."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from urllib.parse import urlsplit

from actors.scrape.listing import PricePoint

LONGEST_ID = 200


def dedupe_key(
    *, external_id: str | None, url: str, title: str, price_cents: int, observed_at: datetime, price_type: str
) -> str:
    """``ext_<id>``, or ``hash_`` and 16 digits of SHA-256 over address, title, cents, UTC day and type."""
    if external_id:
        return f"ext_{external_id}"
    day = observed_at.astimezone(UTC).strftime("%Y-%m-%d")
    # No part contains a line break, so that no two different listings read the same.
    parts = (normal_url(url), normal_title(title), str(price_cents), day, price_type)
    return f"hash_{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:16]}"


def normal_url(url: str) -> str:
    """The address without query and fragment, its host in lower case."""
    parts = urlsplit(url.strip())
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path or '/'}"


def normal_title(title: str) -> str:
    """In lower case (as Unicode compares without case), in one Unicode form (NFKC), with single spaces."""
    folded = title
    # Folding undoes a normal form and the other way round; twice is enough. Through upper case first: some letters
    # (a dotless i) meet their siblings only there.
    for form in ("NFD", "NFKC"):
        folded = unicodedata.normalize(form, folded).upper().casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def usable_id(external_id: object) -> str | None:
    """An id fit for a key; None for an empty one or one too long to be an id."""
    found = str(external_id).strip() if isinstance(external_id, str | int) else ""
    return found if 0 < len(found) <= LONGEST_ID and found.isprintable() else None


def strongest(points: Iterable[PricePoint]) -> list[PricePoint]:
    """One point a key, the strongest (of equals the first), in the order of the keys."""
    kept: dict[str, PricePoint] = {}
    for point in points:
        if point.dedupe_key not in kept or point.match_strength > kept[point.dedupe_key].match_strength:
            kept[point.dedupe_key] = point
    return [kept[key] for key in sorted(kept)]
