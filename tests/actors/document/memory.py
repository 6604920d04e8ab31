"""How much memory a worker and its children take."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil


class Watch:
    """The largest resident size of any one process seen so far, in bytes."""

    def __init__(self) -> None:
        self.most = 0
        self.processes: set[int] = set()


@contextmanager
def watched(pid: int) -> Iterator[Watch]:
    """Look at the process and all its children every few milliseconds while the block runs."""
    watch, over = Watch(), threading.Event()

    def look() -> None:
        while not over.wait(0.02):
            try:
                family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
                for process in family:
                    watch.most = max(watch.most, process.memory_info().rss)
                    watch.processes.add(process.pid)
            except psutil.NoSuchProcess:
                pass

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield watch
    finally:
        over.set()
        thread.join()
