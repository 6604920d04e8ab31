"""What the architecture tests look at: the files that git knows or would add."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
BINARY = {".png", ".pdf", ".jpg", ".jpeg", ".ico", ".woff2", ".gz", ".zip"}


def files(*suffixes: str) -> list[Path]:
    """Paths relative to the root; all text files without a suffix given."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    found = sorted({Path(name) for name in listed if name and (ROOT / name).is_file()})
    return [path for path in found if path.suffix not in BINARY and (not suffixes or path.suffix in suffixes)]


def text(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")
