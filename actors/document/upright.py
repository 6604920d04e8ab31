"""Which way up a page is, and where its lines are: found on the picture itself, before anything is read for good."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Picture = NDArray[Any]

# A box this much longer than it is high is a line, and one this much higher than long a line that stands on end.
LINE = 1.5
# From this angle on neighbouring lines come into each other's boxes: the picture is turned back and looked at again.
ASKEW = math.radians(2.0)
# So many pieces of lines, each so many line heights long, are read both ways up.
PIECES, PIECE = 4, 10.0


def find_lines(models: Any, picture: Picture) -> tuple[Picture, list[Picture]]:
    """The picture turned so that its text is upright, and the corners of its lines, from the top left clockwise."""
    import numpy

    boxes = detect(models, picture)
    if _on_end(boxes):
        picture = numpy.ascontiguousarray(numpy.rot90(picture))
        boxes = detect(models, picture)
    if abs(angle := slant(boxes)) > ASKEW:
        picture = _turned(picture, angle)
        boxes = detect(models, picture)
    if _upside_down(models, picture, boxes):
        picture, boxes = numpy.ascontiguousarray(picture[::-1, ::-1]), _upside(boxes, picture)
    return picture, boxes


def detect(models: Any, picture: Picture) -> list[Picture]:
    """The corners of every line of text, whichever way up."""
    found = models(picture, use_det=True, use_cls=False, use_rec=False)
    return [] if found.boxes is None else list(found.boxes)


def crop(picture: Picture, box: Picture) -> Picture:
    """One line, straight."""
    from rapidocr.utils.process_img import get_rotate_crop_image

    cut: Picture = get_rotate_crop_image(picture, box.astype("float32"))
    return cut


def recognise(models: Any, line: Picture) -> tuple[str, float]:
    """The text of one line and how sure the model is of it."""
    found = models(line, use_det=False, use_cls=False, use_rec=True)
    return (found.txts[0], float(found.scores[0])) if found.txts else ("", 0.0)


def slant(boxes: list[Picture]) -> float:
    """The angle at which the page lay on the scanner: that of most of its long lines, in radians."""
    long = sorted(boxes, key=_length)[-max(3, len(boxes) // 2) :]
    return median(math.atan2(box[1][1] - box[0][1], box[1][0] - box[0][0]) for box in long) if long else 0.0


def _length(box: Picture) -> float:
    return math.dist(box[0], box[1])


def _height(box: Picture) -> float:
    return math.dist(box[1], box[2])


def _on_end(boxes: list[Picture]) -> bool:
    lying = sum(_length(box) for box in boxes if _length(box) > LINE * _height(box))
    standing = sum(_height(box) for box in boxes if _height(box) > LINE * _length(box))
    return standing > lying


def _turned(picture: Picture, angle: float) -> Picture:
    import cv2

    height, width = picture.shape[:2]
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), math.degrees(angle), 1.0)
    turned: Picture = cv2.warpAffine(
        picture, turn, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    return turned


def _upside_down(models: Any, picture: Picture, boxes: list[Picture]) -> bool:
    """Whether pieces of the page's longest lines are read with more confidence the other way up."""
    import numpy

    upright = turned = 0.0
    for box in sorted(boxes, key=_length)[-PIECES:]:
        line = crop(picture, box)
        piece = line[:, : int(PIECE * line.shape[0])]
        upright += recognise(models, piece)[1]
        turned += recognise(models, numpy.ascontiguousarray(piece[::-1, ::-1]))[1]
    return turned > upright


def _upside(boxes: list[Picture], picture: Picture) -> list[Picture]:
    import numpy

    far = numpy.array([picture.shape[1] - 1, picture.shape[0] - 1])
    return [numpy.roll(far - box, 2, axis=0) for box in boxes]
