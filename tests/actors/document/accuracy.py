"""How much of a text was read right."""

from __future__ import annotations

import unicodedata


def accuracy(truth: str, read: str) -> float:
    """1 − edit distance / length, after NFKC; runs of white space count as one space."""
    wanted, got = (" ".join(unicodedata.normalize("NFKC", text).split()) for text in (truth, read))
    before = list(range(len(got) + 1))
    for row, letter in enumerate(wanted, start=1):
        now = [row]
        for column, other in enumerate(got, start=1):
            now.append(min(before[column] + 1, now[-1] + 1, before[column - 1] + (letter != other)))
        before = now
    return 1 - before[-1] / max(len(wanted), 1)
