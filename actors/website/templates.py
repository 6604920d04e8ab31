"""Prompt templates: plain text files with ``$names``. A folder set by the user replaces them one by one."""

from __future__ import annotations

from pathlib import Path
from string import Template

from pipeline import Permanent

SHIPPED = Path(__file__).parent / "prompts"
KNOWN_NAMES = {
    "system": {"schema"},
    "analysis": {
        "url",
        "title",
        "description",
        "language",
        "headings",
        "links_in",
        "links_out",
        "structured_data",
        "text",
    },
    "repair": {"problems", "schema"},
}


def fill(name: str, values: dict[str, str], folder: Path | None = None) -> str:
    """The template ``name`` with ``values`` in it, once: a ``$name`` inside a value stays as it is."""
    template = load(name, folder)
    return template.substitute(values).strip()


def load(name: str, folder: Path | None = None) -> Template:
    """The user's template if there is one, else the shipped one; raises Permanent if it cannot be used."""
    path = _path(name, folder)
    try:
        template = Template(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise Permanent(f"prompt template {path.name} cannot be read: {error}") from None
    if not template.is_valid():
        raise Permanent(f"prompt template {path.name} has a lone '$'; write '$$' for a dollar sign")
    unknown = set(template.get_identifiers()) - KNOWN_NAMES[name]
    if unknown:
        known = ", ".join(sorted(KNOWN_NAMES[name]))
        raise Permanent(f"prompt template {path.name} uses ${sorted(unknown)[0]}; known names are {known}")
    return template


def _path(name: str, folder: Path | None) -> Path:
    own = folder / f"{name}.txt" if folder else None
    return own if own and own.is_file() else SHIPPED / f"{name}.txt"
