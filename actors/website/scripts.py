"""Scripts that lead to another address, understood without running them: where to, if that is written there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_WHOSE = r"(?:(?:window|document|self|top|parent|globalThis)\s*\.\s*){0,2}"
_LEAVES = r"location(?:\s*\.\s*(?:href|pathname|search))?\s*=(?![=>])|location\s*\.\s*(?:replace|assign)\s*\("
# Anything of the kind, also after a click or on some condition.
_ANYWHERE = re.compile(rf"\b(?:{_LEAVES})|\.submit\s*\(\s*\)|\bdocument\s*\.\s*write\s*\(")
_STATEMENT = re.compile(rf"(?<![\w$.]){_WHOSE}(?:{_LEAVES})")
_TEXT = re.compile(r"""\s*(["'`])([^"'`\\\n$]{1,500})\1\s*(?=[;,)}\n]|$|//|-->)""")
# Comments, texts and patterns. Each ends somewhere, so that nothing is looked at twice.
_NOT_CODE = re.compile(
    r"""//[^\n]*|<!--[^\n]*|/\*.*?(?:\*/|\Z)|"(?:[^"\\\n]|\\.)*(?:"|(?=\n)|\Z)|'(?:[^'\\\n]|\\.)*(?:'|(?=\n)|\Z)
    |`(?:[^`\\]|\\.)*(?:`|\Z)|(?<=[(,=:\[!&|?{};\n])/(?:[^/\\\n]|\\.)+/""",
    re.DOTALL | re.VERBOSE,
)
_LOADED = re.compile(r"""(["'])(load|DOMContentLoaded|pageshow)\1""")
_ON_CONDITION = re.compile(
    r"\b(?:if|else|for|while|switch|case|catch|class|on(?:click|submit|change|error|blur|focus|key\w*|mouse\w*))\b"
    r"|&&|\|\||\?"
)
_NAMED = re.compile(
    r"(?:\bfunction\s+|\b(?:const|let|var)\s+)([\w$]{1,60})\s*(?:\(|=\s*(?:async\s*)?(?:function\b|\(|[\w$]+\s*=>))"
)
_BY_ITSELF = re.compile(
    r"^\s*(?:try|do|finally)?\s*$|^\s*[(!+~;]*\s*(?:async\s*)?(?:function\s*\(|\(\s*[\w$,\s]*\)\s*=>)"
    r"|\b(?:setTimeout|onload|onpageshow|load|DOMContentLoaded|pageshow|ready|requestAnimationFrame|then)\b"
    r"|(?:\$|jQuery)\s*\(\s*(?:function|\()"
)
_DELAY = re.compile(r"\s*\)?\s*,\s*(\d{1,12})\s*\)")
# As for a refresh, in milliseconds.
AT_ONCE = 1000


@dataclass(frozen=True)
class _Block:
    """Between two braces. ``head`` is what stands before them, from the last statement on."""

    begin: int
    end: int
    head: str


@dataclass(frozen=True)
class Leap:
    """A statement that leads elsewhere as soon as the script runs. ``target`` is None if the script makes it up itself;
    ``bare``: within no function or block, where something else might have been decided."""

    target: str | None
    bare: bool


def leaps(script: str) -> Iterator[Leap]:
    """In their order."""
    code = _code(script)
    blocks = _blocks(code)
    for found in _STATEMENT.finditer(code):
        around = [block for block in blocks if block.begin < found.start() < block.end]
        if _is_run(code, found, around):
            text = _TEXT.match(script, found.end())
            yield Leap(text.group(2) if text else None, not around)


def may_lead_on(script: str) -> bool:
    """Whether ``script`` leads elsewhere, perhaps on some condition, after a while or after a click."""
    return _ANYWHERE.search(script) is not None


def first_target(script: str) -> str:
    """The first address that ``script`` could lead to, whatever it depends on; empty if none is written there."""
    for found in _STATEMENT.finditer(script):
        if text := _TEXT.match(script, found.end()):
            return text.group(2)
    return ""


def _code(script: str) -> str:
    """The script, with spaces for whatever is not code; but the names of events that come by themselves stay."""

    def blank(found: re.Match[str]) -> str:
        text = found.group()
        return text if _LOADED.fullmatch(text) else " " * len(text)

    return _NOT_CODE.sub(blank, script)


def _blocks(code: str) -> list[_Block]:
    found: list[_Block] = []
    open_ones: list[tuple[int, str]] = []
    last = 0
    for sign in re.finditer(r"[{};]", code):
        if sign.group() == "{":
            open_ones.append((sign.start(), code[last : sign.start()][-300:]))
        elif sign.group() == "}" and open_ones:
            begin, head = open_ones.pop()
            found.append(_Block(begin, sign.start(), head))
        last = sign.end()
    return found + [_Block(begin, len(code), head) for begin, head in open_ones]


def _is_run(code: str, statement: re.Match[str], around: list[_Block]) -> bool:
    """Whether the statement is reached whenever the script is."""
    before = code[max(statement.start() - 300, 0) : statement.start()]
    head = re.split(r"[;{}]", before)[-1]
    if head.strip() and not (head.rstrip().endswith("=>") and _runs(code, _Block(0, _end(code, statement), head))):
        # on a line of its own it is a statement all the same, unless the line before waits for one
        line_before, newline, same_line = head.rpartition("\n")
        if not newline or same_line.strip() or re.search(r"(?:[)=,+&|?:(]|\belse)\s*$", line_before):
            return False
    return all(_runs(code, block) for block in around)


def _end(code: str, statement: re.Match[str]) -> int:
    closing = code.find(")", statement.end()) if statement.group().endswith("(") else -1
    found = re.compile(r"[,;\n)]").search(code, closing + 1 if closing >= 0 else statement.end())
    return found.start() - 1 if found else len(code)


def _runs(code: str, block: _Block) -> bool:
    if _ON_CONDITION.search(block.head):
        return False
    named = _NAMED.search(block.head)
    if named and "(" not in block.head[: named.start()]:
        # called by another, or by its name in a handler
        return len(re.findall(rf"(?<![\w$.]){re.escape(named.group(1))}(?![\w$])", code)) > 1
    delay = _DELAY.match(code, block.end + 1)
    if delay and "setTimeout" in block.head and int(delay.group(1)) > AT_ONCE:
        return False
    return _BY_ITSELF.search(block.head) is not None
