"""The house in figures: printed by ``pytest -s tests/architecture/test_counts.py``, and held where a limit was agreed."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from statistics import median, quantiles

import pipeline
from tests.architecture.house import ROOT, files, text

ENGINE = [path for path in files(".py") if path.parts[0] == "pipeline"]
# A job's way through the engine is fourteen files, so that some of them are long (docs/walk.md).
LONGEST_MODULE = 640
MOST_CONCEPTS = 25


def functions() -> dict[str, int]:
    """Lines of each function of the engine, without its docstring."""
    found = {}
    for path in ENGINE:
        for node in ast.walk(ast.parse(text(path))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
                found[f"{path}:{node.name}"] = (body[-1].end_lineno or 0) - body[0].lineno + 1
    return found


def test_functions_and_modules_are_short() -> None:
    """As short as the best of the field (5 lines in the middle, 15 for nine of ten)."""
    lengths = functions()
    longest = max(lengths, key=lambda name: lengths[name])
    tenths = quantiles(lengths.values(), n=10)
    largest = max(ENGINE, key=lambda path: len(text(path).splitlines()))
    print(f"\nfunctions: {len(lengths)}, median {median(lengths.values())}, p90 {tenths[8]:.0f} lines", end="")
    print(f", largest {lengths[longest]} ({longest})")
    print(f"modules: {len(ENGINE)}, largest {len(text(largest).splitlines())} lines ({largest})")
    assert median(lengths.values()) <= 8 and tenths[8] <= 13
    assert len(text(largest).splitlines()) <= LONGEST_MODULE


def test_a_folder_is_one_thing() -> None:
    """Printed; a folder of more than twelve files is usually two. Migrations are one by one what has been."""
    folders = Counter(
        str(path.parent) for path in ENGINE if path.name != "__init__.py" and path.parent.name != "versions"
    )
    print("\nfiles a folder: " + ", ".join(f"{folder} {n}" for folder, n in folders.most_common(8)))
    assert folders.most_common(1)[0][1] <= 13


def test_the_formatter_decides_the_layout() -> None:
    """No line is kept from it."""
    skipped = [str(path) for path in files(".py") if "# fmt: " + "skip" in text(path)]
    print(f"\nfmt: skip in {len(skipped)} files")
    assert not skipped


def test_what_users_see_is_typed() -> None:
    """Every public function and method has annotations; where JSON travels, its values are Any."""
    untyped = []
    for name in pipeline.__all__:
        thing = getattr(pipeline, name)
        members = (
            [thing] if inspect.isfunction(thing) else [m for _, m in inspect.getmembers(thing, inspect.isfunction)]
        )
        for member in members:
            if not member.__module__.startswith("pipeline") or member.__name__.startswith("_"):
                continue
            missing = [p.name for p in inspect.signature(member).parameters.values() if p.annotation is p.empty]
            untyped += [f"{name}.{member.__name__}({one})" for one in missing if one not in ("self", "cls")]
    print(f"\npublic names: {len(pipeline.__all__)}, parameters without a type: {len(untyped)}")
    assert not untyped
    assert (ROOT / "pipeline/py.typed").exists()


def test_the_glossary_is_short() -> None:
    """A newcomer learns as many concepts as other projects of the field ask for."""
    engine = (ROOT / "docs/glossary.md").read_text().split("\n\n|")[1]
    rows = [line for line in engine.splitlines() if line.startswith("| **")]
    print(f"\nglossary: {len(rows)} entries")
    assert len(rows) <= MOST_CONCEPTS
