"""Throughput as bars: plot.py FIGURES.json TARGET.svg. Runs in an environment of its own, which has matplotlib."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "bench"
figures = json.loads(Path(sys.argv[1]).read_text())
rates = sorted((figures["jobs_per_s"][name], name) for name in ("pipeline", *figures["ratio"]))
figure, axes = plt.subplots(figsize=(8, 4))
colors = ["#c2410c" if name == "pipeline" else "#94a3b8" for _, name in rates]
bars = axes.barh(
    [name.replace("_", ", ", 1).replace("_", " ") for _, name in rates], [n for n, _ in rates], color=colors
)
axes.bar_label(bars, padding=3)
axes.set_xlabel("jobs of three empty phases, per second")
axes.spines[["top", "right"]].set_visible(False)
figure.tight_layout()
figure.savefig(sys.argv[2], metadata={"Date": None})
