"""The page docs/reference/python.md: every public name with its signature, its docstring and an example."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from docs.signatures import call, members, signature

# Examples in a docstring: from a prompt to the next empty line.
EXAMPLE = re.compile(r"^(>>> .*?(?:\n\n|\Z))", re.DOTALL | re.MULTILINE)
# Names that are neither classes nor functions, and the modules where a text below them says what they are.
VALUES = {
    "Viewer": "pipeline.front.api.http.auth",
    "Operator": "pipeline.front.api.http.auth",
    "Cursor": "pipeline.front.api.http.pages",
    "Limit": "pipeline.front.api.http.pages",
    "Text": "pipeline.front.api.http.fields",
    "webhook": "pipeline.webhooks.delivery",
}
# Docstrings of models are shown to those who call the API, so that their examples are here.
OF_MODELS = {
    "Webhook": """
>>> Webhook(url="https://example.org/orders", type="order.paid", data={"order": 17}).secret
'default'
""",
    "Page": """
>>> Page[str](items=["a lamp"]).model_dump()
{'items': ['a lamp'], 'next': None}
""",
}
# Written down as `>>>` in docstrings; this is what all of them have around them.
PRELUDE = """\
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import text

orders = Workflow("orders")  # and from pipeline: whatever an example names


@orders.phase
def check_stock(job: Job) -> dict[str, int]:
    return {"left": 3}


@orders.phase
def charge(job: Job, check_stock: dict[str, int]) -> str:
    return f"charged with {job.idempotency_key}"


complaints = Workflow("complaints")


@complaints.phase
def complain(job: Job) -> None: ...
"""


@dataclass(frozen=True)
class Chapter:
    """Names that belong together. ``about``: what they are for."""

    title: str
    about: str
    module: str
    listed: str

    @property
    def names(self) -> list[str]:
        return self.listed.split()


CHAPTERS = (
    Chapter(
        "Declaring",
        "[A new workflow](../howto/new-workflow.md) shows them together.",
        "pipeline",
        "Workflow Phase Backoff exponential Throttle",
    ),
    Chapter(
        "In a phase",
        "What a phase function gets and gives. [Waits](../howto/waits.md) has the longer examples.",
        "pipeline",
        "Job Done Children Ends End count",
    ),
    Chapter(
        "What a phase raises",
        "Any other exception is tried again, until the budget of errors is used up.",
        "pipeline",
        "Permanent Transient Snooze Cancelled StaleClaim retry_after",
    ),
    Chapter(
        "Submitting and steering",
        "In your own transaction: [submit](../howto/submit.md).",
        "pipeline",
        "submit submit_many cancel replay signal open_batch seal_batch BadInput engine readable_errors",
    ),
    Chapter(
        "A job that was submitted",
        "",
        "pipeline",
        "JobHandle AsyncJobHandle job JobStatus JobFailed JobCancelled",
    ),
    Chapter(
        "Schedules",
        "At run time; `Workflow.schedule` declares them in code. [Schedules](../howto/schedules.md).",
        "pipeline",
        "schedule unschedule pause_schedule resume_schedule run_schedule backfill schedules Schedule",
    ),
    Chapter(
        "Limits and breakers",
        "What several phases share outside, by name; see [`Job.limit`](#job) and [limits](../howto/limits.md).",
        "pipeline",
        "Limit Breaker set_rate_limit pause_rate_limit",
    ),
    Chapter(
        "Behind an interface of your own",
        "For applications that keep the engine out of their own signatures.",
        "pipeline",
        "JobDispatcher TransactionDispatcher MemoryDispatcher JobHandler run_handler",
    ),
    Chapter("Extending", "[Extend the engine](../howto/extend.md).", "pipeline", "extend View"),
    Chapter(
        "pipeline.testing",
        "[Test your workflow](../howto/test-your-workflow.md).",
        "pipeline.testing",
        "in_memory Run MemoryRun JobRecord AttemptRecord CollectedWrite FakeServices MemoryDispatcher run_handler",
    ),
    Chapter(
        "pipeline.webhooks",
        "[Hooks and webhooks](../howto/hooks.md).",
        "pipeline.webhooks",
        "webhook Webhook verify Received InvalidWebhook",
    ),
    Chapter(
        "pipeline.api",
        "Routes of your own beside `/v1`: [extend the engine](../howto/extend.md#routes).",
        "pipeline.api",
        "Viewer Operator Page Limit Cursor cut decode_cursor Text Problem not_found conflict invalid problems "
        "allow_body pieces transaction",
    ),
    Chapter(
        "pipeline.cli",
        "Commands of your own: [extend the engine](../howto/extend.md#commands).",
        "pipeline.cli",
        "console transaction",
    ),
)


def page() -> str:
    """The page, without its first line."""
    intro = (
        "What `import pipeline` gives, and its modules `testing`, `webhooks`, `api` and `cli`. Anything else is the "
        "engine's own and may change. A call that takes a `caller` runs in the caller's transaction and is awaited "
        "where that is async; with `None` it is a transaction by itself."
    )
    named = "Every example is run by `tests/docs/test_python_reference.py`. They have this before them:"
    chapters = [line for chapter in CHAPTERS for line in _chapter(chapter, _written_before(chapter))]
    return "\n".join(["# Python\n", intro, "", named, "", f"```python\n{PRELUDE}```", "", *chapters])


def _written_before(chapter: Chapter) -> set[str]:
    before = CHAPTERS[: CHAPTERS.index(chapter)]
    here, there = import_module(chapter.module), [(import_module(other.module), other.names) for other in before]
    return {
        name
        for module, names in there
        for name in names
        if name in chapter.names and getattr(module, name) is getattr(here, name)
    }


def _chapter(chapter: Chapter, written: set[str]) -> Iterator[str]:
    yield f"## {chapter.title}\n"
    if chapter.about:
        yield f"{chapter.about}\n"
    if again := [f"[`{name}`](#{name.lower()})" for name in chapter.names if name in written]:
        yield f"Also here: {', '.join(again)}.\n"
    for name in chapter.names:
        if name not in written:
            yield from _entry(chapter.module, name)


def _entry(module: str, name: str) -> Iterator[str]:
    thing = getattr(import_module(module), name)
    yield f"### {name}\n"
    yield f"```python\n{signature(name, thing)}\n```\n"
    yield from _prose(docstring(module, name))
    if inspect.isclass(thing):
        for member, value in members(thing):
            yield f"```python\n{call(f'{name}.{member}', value)}\n```\n"
            yield from _prose(inspect.getdoc(value) or "")


def docstring(module: str, name: str) -> str:
    """Of a name that is a value: the text below its assignment."""
    if module == "pipeline.api" and name in VALUES:
        return _below(name, import_module(VALUES[name]))
    return (inspect.getdoc(getattr(import_module(module), name)) or "") + OF_MODELS.get(name, "")


def _below(name: str, module: Any) -> str:
    body = ast.parse(inspect.getsource(module)).body
    for one, after in itertools.pairwise(body):
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == name and isinstance(after, ast.Expr):
            return inspect.cleandoc(str(ast.literal_eval(after.value)))
    raise LookupError(f"{module.__name__}.{name} has no text below it that says what it is")


def _prose(text: str) -> Iterator[str]:
    """A docstring as Markdown: names in single backquotes, examples in blocks."""
    for part in EXAMPLE.split(text):
        if part.startswith(">>>"):
            yield f"```pycon\n{part.rstrip()}\n```\n"
        elif part.strip():
            yield part.strip().replace("``", "`") + "\n"
