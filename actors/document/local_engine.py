"""OCR on this machine, offline: RapidOCR with the models that come in its package, on one thread."""

from __future__ import annotations

import logging
import math
import os
from functools import cache
from statistics import median
from typing import TYPE_CHECKING, Any

from actors.document.boost import tidy
from actors.document.engines import Recognised
from actors.document.ink import cleaned, is_empty, outside
from actors.document.layout import Line, paragraphs
from actors.document.upright import crop, find_lines, recognise, slant

if TYPE_CHECKING:
    from PIL.Image import Image

log = logging.getLogger(__name__)

# Two workers on two cores are twice as fast as one only if neither takes the other's core.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# Lines are found on a picture of at most this side, and read from one of the second: half the time, the same text,
# and a sheet of 40 million pixels fits into the phase's memory several times over.
FIND_ON, READ_ON = 1280, 3000
# A line that the model is less sure of than this is not text, or not to be read.
READABLE = 0.5
# Letters a line has for each of its heights, at least: wide capitals have one, usual print two.
THINNEST = 0.35
# A page that was read with less confidence than this is worth a second look.
AGAIN = 0.9


class LocalEngine:
    """An OcrEngine. Its first page in a process loads about 300 MB of models and libraries, which then stay loaded."""

    name = "rapidocr"

    async def read(self, page: Image, key: str) -> Recognised:
        """The page's text by PP-OCR, whichever way up the page is; read again without specks if that went badly."""
        models = load_models()  # before numpy, which takes its threads when it is imported
        import cv2
        import numpy

        page = page.convert("RGB")
        page.thumbnail((READ_ON, READ_ON))
        picture = numpy.asarray(page)
        found = _read(models, picture)
        if (found.confidence or 0.0) >= AGAIN or is_empty(picture[:, :, 0]):
            return found
        again = _read(models, cv2.cvtColor(cleaned(picture[:, :, 0]), cv2.COLOR_GRAY2RGB))
        return max(found, again, key=lambda one: one.confidence or 0.0)


def _read(models: Any, picture: Any) -> Recognised:
    picture, boxes = find_lines(models, picture)
    read = [recognise(models, crop(picture, box)) for box in boxes]
    lines = straighten([box.tolist() for box in boxes], slant(boxes), read)
    readable = [line.confidence >= READABLE and line.text != "" for line in lines]
    seen = [box for box, good in zip(boxes, readable, strict=True) if good]
    kept = [line for line, good in zip(lines, readable, strict=True) if good]
    return Recognised(paragraphs(kept), _confidence(lines, kept, picture[:, :, 0], seen))


@cache
def load_models() -> Any:
    """Once a process: a child process of the phase keeps them for its next documents."""
    log.info("loading the OCR models")
    for name in ONE_THREAD:
        os.environ.setdefault(name, "1")
    import cv2
    from rapidocr import RapidOCR

    cv2.setNumThreads(1)
    return RapidOCR(
        params={
            "Global.log_level": "error",
            "Global.text_score": 0.0,
            "Global.max_side_len": READ_ON,
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            "Det.limit_type": "max",
            "Det.limit_side_len": FIND_ON,
            "Rec.rec_batch_num": 1,
        }
    )


def straighten(boxes: list[list[list[float]]], angle: float, read: list[tuple[str, float]]) -> list[Line]:
    """Lines whose boxes are turned back by the angle at which the page lay on the scanner."""
    cosine, sine = math.cos(-angle), math.sin(-angle)
    lines = []
    for box, (text, score) in zip(boxes, read, strict=True):
        across = [x * cosine - y * sine for x, y in box]
        down = [x * sine + y * cosine for x, y in box]
        lines.append(Line(tidy(text), score, min(across), min(down), max(across), max(down)))
    return lines


def _confidence(lines: list[Line], kept: list[Line], grey: Any, seen: list[Any]) -> float | None:
    """That of the lines, by the room they take, times the share of letters that stand in a line that was kept."""
    if not kept:
        return 0.0 if lines else None
    room = sum(line.width for line in lines)
    missed = outside(grey, seen, median(line.height for line in kept))
    return (1 - missed) * sum(line.confidence * filled(line) * line.width for line in lines) / room


def filled(line: Line) -> float:
    """How much of a line's room its letters can fill, 0 … 1.

    Of an alphabet that the models do not know they read a point here and there, and are sure of that.
    """
    least = THINNEST * line.width / max(line.height, 1.0)
    letters = sum(not letter.isspace() for letter in line.text)
    return min(1.0, letters / least) if least > 1 else 1.0


def read_line(line: Any) -> str:
    """The text of a grey picture of one line."""
    models = load_models()
    import cv2

    return recognise(models, cv2.cvtColor(line, cv2.COLOR_GRAY2RGB))[0]
