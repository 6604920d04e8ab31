"""An error for people: where the team's own code raised it, with the frames of libraries and of the engine folded."""

from __future__ import annotations

import re
import sysconfig
import traceback
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import FrameType, TracebackType

# Bytes of UTF-8 that are kept of a traceback.
LONGEST = 8192
LONGEST_MESSAGE = 2000
# Errors that one error names as its causes, and errors of a group.
MOST_CAUSES, MOST_OF_GROUP = 5, 5
MOST_FRAMES = 200
ENGINE = f"{Path(__file__).parent.parent}/"
STANDARD = tuple(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib"))
INSTALLED = re.compile(r"/(?:site|dist)-packages/([^/.]+)")
NAMES = "password|passwd|secret|token|api[-_]?key|access[-_]?key|authorization"
# Wherever a secret has the shape of one: in an address, after its name, in a header.
SECRETS = (
    (re.compile(r"(?<=://)[^\s/:@'\"]*:[^\s/@'\"]+(?=@)"), "***"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), r"\1 ***"),
    (re.compile(rf"(?i)([\w-]*(?:{NAMES})[\w-]*(?:['\"]\s*:\s*|=)['\"]?)[^\s'\",;&)}}\]]+"), r"\1***"),
)


def formatted(error: BaseException) -> str:
    """As Python prints it, at most ``LONGEST`` bytes; runs of frames that are not the team's become a line each."""
    return bounded("\n\n".join(reversed(list(_chain(error)))))


def place(error: BaseException, *, team: bool = False) -> str | None:
    """``file.py:12``: the team's line that is nearest to where it was raised. Otherwise, and unless ``team``, the first
    line that the engine called, or the engine's own."""
    return nearest(_frames(error.__traceback__), team=team)


def nearest(frames: list[traceback.FrameSummary], *, team: bool = False) -> str | None:
    """As ``place``."""
    owners = [_owner(frame.filename)[0] for frame in frames]
    if "team" in owners:
        found = len(owners) - 1 - owners[::-1].index("team")
    elif team or not frames:
        return None
    else:
        # The team's own package may be installed like a library.
        found = len(owners) - owners[::-1].index("engine") if "engine" in owners else 0
    frame = frames[min(found, len(frames) - 1)]
    return f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}"


def told(frames: list[traceback.FrameSummary], said: str) -> str:
    """As Python prints it."""
    return "\n".join(["Traceback (most recent call last):", *_folded(frames), said] if frames else [said])


def of_frame(frame: FrameType | None) -> TracebackType | None:
    """Where a thread is at this moment, as if it had raised an error there."""
    found: TracebackType | None = None
    while frame is not None:
        found = TracebackType(found, frame, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return found


def bounded(text: str, most: int = LONGEST) -> str:
    """Storable, without secrets, and no longer than that: what is in the middle of a longer one is left out."""
    kept = storable(without_secrets(text))
    raw = kept.encode()
    if len(raw) <= most:
        return kept
    ahead = most // 4
    left_out = "\n  … cut …\n"
    behind = most - ahead - len(left_out.encode())
    return raw[:ahead].decode(errors="ignore") + left_out + raw[-behind:].decode(errors="ignore")


def storable(text: str) -> str:
    """PostgreSQL takes neither NUL nor half a surrogate pair, and an error must always be recordable."""
    return text.replace("\x00", "�").encode("utf-8", "replace").decode()


def without_secrets(text: str) -> str:
    """Passwords in addresses, and what stands behind the name of a secret, are left out."""
    for shape, instead in SECRETS:
        text = shape.sub(instead, text)
    return text


def message(error: BaseException) -> str:
    """What it says. SQLAlchemy's errors quote statement and parameters, which may be what the job is about."""
    said = str(getattr(error, "orig", None) or error).strip()
    notes = [str(note) for note in getattr(error, "__notes__", ())]
    return "\n".join([said, *notes])[:LONGEST_MESSAGE]


def _chain(error: BaseException) -> Iterator[str]:
    """The error first, then what it came from."""
    link = ""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen and len(seen) <= MOST_CAUSES:
        seen.add(id(at))
        yield _one(at) + link
        if at.__cause__ is not None:
            at, link = at.__cause__, "\n\nThe above exception was the direct cause of the following exception:"
        elif at.__context__ is not None and not at.__suppress_context__:
            at, link = at.__context__, "\n\nDuring handling of the above exception, another exception occurred:"
        else:
            return


def _one(error: BaseException) -> str:
    lines = [told(_frames(error.__traceback__), f"{_name(type(error))}: {message(error)}".removesuffix(": "))]
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions[:MOST_OF_GROUP]:
            lines += [f"  | {line}" for line in _one(part).splitlines()]
        if (more := len(error.exceptions) - MOST_OF_GROUP) > 0:
            lines.append(f"  | … and {more} more")
    return "\n".join(lines)


def _name(kind: type[BaseException]) -> str:
    return (
        kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    )


def _frames(found: TracebackType | None) -> list[traceback.FrameSummary]:
    """The outermost and the innermost, should there be a great many."""
    frames = list(traceback.extract_tb(found))
    return frames if len(frames) <= MOST_FRAMES else frames[: MOST_FRAMES // 4] + frames[-3 * MOST_FRAMES // 4 :]


def _folded(frames: list[traceback.FrameSummary]) -> Iterator[str]:
    """The team's frames, and the last one, whoever's it is."""
    last = len(frames) - 1
    shown = [_owner(frame.filename)[0] == "team" or n == last for n, frame in enumerate(frames)]
    for show, run in groupby(zip(shown, frames, strict=True), key=lambda pair: pair[0]):
        some = [frame for _, frame in run]
        if show:
            yield "".join(traceback.StackSummary.from_list(some).format()).rstrip("\n")
        else:
            owners = Counter(_owner(frame.filename)[1] for frame in some)
            yield f"  … {', '.join(f'{n} of {name}' for name, n in owners.items())}"


def _owner(path: str) -> tuple[str, str]:
    """Whose code it is: the team's, a library's, or the engine's; and its name."""
    if path.startswith(ENGINE):
        return "engine", "pipeline"
    if installed := INSTALLED.search(path):
        return "library", installed[1]
    if path.startswith((*STANDARD, "<")):
        return "library", "Python"
    return "team", ""
