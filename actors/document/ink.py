"""The marks on a page's picture: whether there are any, and how many of those that look like letters were missed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Picture = NDArray[Any]

# A mark is so many levels darker than the paper around it, and around is this many pixels.
CONTRAST, AROUND = 14, 25
# Of a page with less than this share of marks nobody would say that something stands on it.
EMPTY = 0.0005
# A letter is between these many line heights high, and not wider than the last.
LETTER_LOW, LETTER_HIGH, LETTER_WIDE = 0.2, 1.5, 3.0


def marks(grey: Picture) -> Picture:
    """What is darker than its surroundings, single specks apart."""
    import cv2
    import numpy

    smooth = cv2.medianBlur(numpy.ascontiguousarray(grey), 3)
    darker = cv2.morphologyEx(smooth, cv2.MORPH_BLACKHAT, numpy.ones((AROUND, AROUND), "uint8"))
    # half way to the threshold between text and paper, so that grey print beside black still counts
    between, _ = cv2.threshold(darker, 0, 255, cv2.THRESH_OTSU)
    found: Picture = (darker > max(CONTRAST, between / 2)).astype("uint8")
    return found


def cleaned(grey: Picture) -> Picture:
    """The picture without specks, from black to white: to try again with where nothing was read."""
    import cv2
    import numpy

    smooth = cv2.medianBlur(numpy.ascontiguousarray(grey), 3)
    black, white = numpy.percentile(smooth[::4, ::4], (0.5, 50))
    stretch = 255 / max(white - black, 1)
    stretched: Picture = cv2.addWeighted(smooth, stretch, smooth, 0, -black * stretch)
    return stretched


def is_empty(grey: Picture) -> bool:
    """Whether the page shows nothing at all."""
    return bool(marks(grey).mean() < EMPTY)


def outside(grey: Picture, places: Iterable[Any], height: float) -> float:
    """Which share of the marks that look like letters of lines so high stands outside these places (their corners)."""
    import cv2
    import numpy

    _, _, found, middles = cv2.connectedComponentsWithStats(marks(grey))
    tall, wide = found[1:, cv2.CC_STAT_HEIGHT], found[1:, cv2.CC_STAT_WIDTH]
    letters = (tall > LETTER_LOW * height) & (tall < LETTER_HIGH * height) & (wide < LETTER_WIDE * height)
    covered = numpy.zeros(grey.shape[:2], "uint8")
    for corners in places:
        cv2.fillPoly(covered, [numpy.asarray(corners).round().astype("int32")], 1)
    at = middles[1:][letters].round().astype(int)
    return float(1 - covered[at[:, 1], at[:, 0]].mean()) if len(at) else 0.0
