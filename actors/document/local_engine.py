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
from actors.document.layout import Line, paragraphs

if TYPE_CHECKING:
    from PIL.Image import Image

log = logging.getLogger(__name__)

# Two workers on two cores are twice as fast as one only if neither takes the other's core.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# Lines are found on a picture of at most this side, and read from the full one: half the time, the same text.
FIND_ON = 1280


class LocalEngine:
    """An OcrEngine. Its first page in a process loads about 300 MB of models and libraries, which then stay loaded."""

    name = "rapidocr"

    async def read(self, page: Image, key: str) -> Recognised:
        """The page's text by PP-OCR, put in reading order."""
        models = load_models()  # before numpy, which takes its threads when it is imported
        import numpy

        found = models(numpy.asarray(page.convert("RGB")))
        if found.boxes is None or not found.txts:
            return Recognised([])
        lines = straighten(found.boxes.tolist(), found.txts, found.scores)
        return Recognised(paragraphs(lines), _confidence(lines))


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
            "Global.use_cls": False,
            "Global.max_side_len": 3000,
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            "Det.limit_type": "max",
            "Det.limit_side_len": FIND_ON,
            "Rec.rec_batch_num": 1,
        }
    )


def straighten(boxes: list[list[list[float]]], texts: tuple[str, ...], scores: tuple[float, ...]) -> list[Line]:
    """Lines whose boxes are turned back by the angle at which the page lay on the scanner."""
    angle = median(math.atan2(box[1][1] - box[0][1], box[1][0] - box[0][0]) for box in boxes)
    cosine, sine = math.cos(-angle), math.sin(-angle)
    lines = []
    for box, text, score in zip(boxes, texts, scores, strict=True):
        across = [x * cosine - y * sine for x, y in box]
        down = [x * sine + y * cosine for x, y in box]
        lines.append(Line(tidy(text), float(score), min(across), min(down), max(across), max(down)))
    return [line for line in lines if line.text]


def _confidence(lines: list[Line]) -> float | None:
    letters = sum(len(line.text) for line in lines)
    return sum(line.confidence * len(line.text) for line in lines) / letters if letters else None
