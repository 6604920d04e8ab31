"""A terminal session that really happens, written down as an SVG that plays at its own pace."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from xml.sax.saxutils import escape

COLUMNS = 112
# Pixels of a character and of a line; seconds for each character that is typed, and before the next command.
WIDE, HIGH, PER_KEY, PAUSE = 7.8, 19, 0.03, 0.7
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">
<style>
text {{ font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d5dae1; white-space: pre }}
.typed {{ fill: #7ee0a1; font-weight: bold }}
.line {{ opacity: 0; animation: show 0.01s forwards }}
@keyframes show {{ to {{ opacity: 1 }} }}
@media (prefers-reduced-motion) {{ .line {{ animation-delay: 0s !important }} }}
</style>
<rect width="100%" height="100%" rx="8" fill="#161b22"/>
"""


@dataclass
class Session:
    """Commands, what each printed, and when. The pace is the session's own; only typing is made up."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    lines: list[tuple[float, str, bool]] = field(default_factory=list)
    clock: float = 0.0

    def say(self, comment: str) -> None:
        """Typed, and nothing happens."""
        self._type(f"# {comment}")

    def run(self, command: str, keep: str | None = None) -> str:
        """Run it in a shell; ``keep`` is the variable that gets what it prints, as ``NAME=$(…)`` would."""
        self._type(f"$ {keep}=$({command})" if keep else f"$ {command}")
        began = monotonic()
        environment = {**os.environ, **self.variables, "COLUMNS": str(COLUMNS)}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(["bash", "-c", command], cwd=self.folder, env=environment, text=True, **pipes)
        assert process.stdout is not None
        said = [(monotonic() - began, line.rstrip("\n")) for line in process.stdout]
        if process.wait():
            raise RuntimeError(f"{command} failed: {said}")
        if keep:
            self.variables[keep] = said[-1][1]
        else:
            self.lines += [(self.clock + at, line, False) for at, line in said]
        self.clock += monotonic() - began + PAUSE
        return "\n".join(line for _, line in said)

    def _type(self, text: str) -> None:
        self.clock += PER_KEY * len(text)
        self.lines.append((self.clock, text, True))

    def svg(self, label: str) -> str:
        """All of it. Without animations, or when it is printed, its last moment."""
        size = {"width": round(COLUMNS * WIDE + 32), "height": (len(self.lines) + 1) * HIGH + 8}
        rows = [
            f'<text class="line{" typed" if typed else ""}" x="16" y="{(place + 1) * HIGH + 4}"'
            f' style="animation-delay:{at:.2f}s" xml:space="preserve">{escape(text)}</text>'
            for place, (at, text, typed) in enumerate(self.lines)
        ]
        return HEAD.format(**size, label=escape(label)) + "\n".join(rows) + "\n</svg>\n"
