"""The cache: shared by processes, bounded, and never a reason to fail."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from actors.scrape import cache as module
from actors.scrape.cache import FILE, Cache
from pipeline.observe.instruments import snapshot

MEBIBYTE = 1 << 20


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache", 60.0, 4 * MEBIBYTE)


def counted(name: str) -> int:
    return snapshot().get(f"cache.{name}", 0)


def test_a_value_comes_back_and_is_counted(cache: Cache) -> None:
    """A miss, then a hit."""
    hits, misses = counted("hit"), counted("miss")
    value = [{"title": "Ⅷ “cent”", "price": 1.5, "id": None}]
    assert cache.get("a|1909|S") is None
    cache.set("a|1909|S", value)
    assert cache.get("a|1909|S") == value and cache.get("a|1909|D") is None
    assert (counted("hit") - hits, counted("miss") - misses) == (1, 2)


def test_a_value_expires(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its time it is a miss, and a new value takes its place."""
    now = time.time()
    cache.set("key", 1)
    monkeypatch.setattr(time, "time", lambda: now + 61)
    assert cache.get("key") is None
    cache.set("key", 2)
    assert cache.get("key") == 2


def test_processes_and_threads_share_it(cache: Cache) -> None:
    """Four processes and eight threads write at once; everything is there."""
    program = (
        "import sys, pathlib; from actors.scrape.cache import Cache\n"
        f"cache = Cache(pathlib.Path(sys.argv[1]), 60.0, {4 * MEBIBYTE})\n"
        "for n in range(50): cache.set(f'{sys.argv[2]}-{n}', [n]); assert cache.get(f'{sys.argv[2]}-{n}') == [n]"
    )
    processes = [subprocess.Popen([sys.executable, "-c", program, str(cache.folder), str(n)]) for n in range(3)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: cache.set(f"thread-{n}", [n]), range(200)))
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert all(cache.get(f"{who}-{n}") == [n] for who in range(3) for n in range(50))
    assert all(cache.get(f"thread-{n}") == [n] for n in range(200))


def test_it_never_grows_beyond_its_size_and_keeps_the_newest(cache: Cache) -> None:
    """Ten times what fits: the oldest make room."""
    for n in range(400):
        cache.set(f"key-{n}", "x" * 100_000)
    assert sum(path.stat().st_size for path in cache.folder.iterdir()) <= 4 * MEBIBYTE * 1.5
    assert cache.get("key-399") is not None and cache.get("key-0") is None


def test_a_value_that_is_too_large_is_not_kept(cache: Cache) -> None:
    """One answer must not empty the cache."""
    cache.set("key", "x" * (module.LARGEST_VALUE + 1))
    assert cache.get("key") is None


def test_a_broken_file_is_an_empty_cache(cache: Cache) -> None:
    """Neither reading nor writing raises; the trouble is counted."""
    cache.folder.mkdir()
    (cache.folder / FILE).write_bytes(b"not a database" * 1000)
    before = counted("error")
    cache.set("key", 1)
    assert cache.get("key") is None and counted("error") == before + 2


def test_a_folder_that_cannot_be_is_an_empty_cache(tmp_path: Path) -> None:
    """A file stands where the folder should."""
    (tmp_path / "file").write_text("")
    broken = Cache(tmp_path / "file" / "cache", 60.0, MEBIBYTE)
    broken.set("key", 1)
    assert broken.get("key") is None


def test_what_cannot_be_written_as_json_is_not_kept(cache: Cache) -> None:
    """There is no pickle to fall back to."""
    cache.set("key", object())
    assert cache.get("key") is None
