"""F12: a temp folder goes after its worker, and never while its worker may live or if it is another database's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psycopg

from pipeline import submit
from pipeline.dev.services import Servers
from pipeline.maintenance.temp_folders import TempFolders, database_id
from tests.databases import Databases
from tests.place import Place


def pages(place: Place) -> list[Path]:
    """What running jobs of this database have written."""
    return list((place.folder / "temp").glob("*/*/*/page.png"))


def wait_for_a_sweep(place: Place) -> None:
    """A dead worker's folder is laid out: when it is gone, somebody has looked at all of them since."""
    with psycopg.connect(place.database_url) as connection:
        bait = place.folder / "temp" / database_id(connection) / "dead-1"
    bait.mkdir(parents=True)
    place.until(lambda: not bait.exists(), 20, "a sweep")


def test_a_living_worker_that_lost_postgresql_keeps_its_folder(place: Place) -> None:
    """Frozen and cut off it looks dead to PostgreSQL; the folder goes only when the process has ended."""
    place.worker(threads=1)
    job = submit(None, "single", {"do": "temp", "seconds": 60})
    place.until(lambda: pages(place), 20, "the job's file")
    victim = place.holder(job)
    os.kill(victim, signal.SIGSTOP)
    place.db.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    [page] = pages(place)
    place.worker(threads=1)
    for _ in range(2):
        wait_for_a_sweep(place)
        assert page.exists(), "removed while its worker lives"
    os.kill(victim, signal.SIGKILL)
    place.until(lambda: not page.exists(), 20, "the killed worker's folder to go")


def test_two_databases_on_one_temp_folder_keep_off_each_others(place: Place) -> None:
    """Each cleans up after its own workers."""
    foreign = place.folder / "temp" / "another-database" / "its-worker"
    foreign.mkdir(parents=True)
    place.worker(threads=1)
    wait_for_a_sweep(place)
    wait_for_a_sweep(place)
    assert foreign.exists()


def test_a_stopped_worker_leaves_no_folder(place: Place) -> None:
    """In order, its own folder goes with it."""
    worker = place.worker(threads=1)
    assert len(list((place.folder / "temp").glob("*/*"))) == 1
    worker.terminate()
    worker.wait(20)
    assert not list((place.folder / "temp").glob("*/*"))


def test_the_name_of_a_database_is_its_own(servers: Servers, databases: Databases, place: Place) -> None:
    """The same over every connection, another for each database, also for a role without any rights."""
    other = databases.new("test")
    place.db.execute(
        "DO $$ BEGIN CREATE ROLE nobody_special LOGIN PASSWORD 'x'; EXCEPTION WHEN OTHERS THEN NULL; END $$"
    )
    names = []
    for url in (place.database_url, place.database_url, servers.postgres.url(other)):
        with psycopg.connect(url) as connection:
            names.append(database_id(connection))
            connection.execute("SET ROLE nobody_special")
            names.append(database_id(connection))
    assert names[0] == names[1] == names[2] == names[3] != names[4] == names[5]
    databases.give_back(other)


def test_a_program_that_a_phase_started_does_not_keep_the_folder(tmp_path: Path) -> None:
    """The lock is the worker's alone."""
    mine = TempFolders(tmp_path, "db")
    folder = mine.open("worker-1")
    program = [sys.executable, "-c", "print('here', flush=True); input()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False) as child:
        # Until it is a program of its own, it is a copy of this process and has the lock, too.
        assert child.stdout is not None and child.stdout.readline() == b"here\n"
        assert TempFolders(tmp_path, "db").sweep() == []
        assert mine._lock is not None
        os.close(mine._lock)  # as the end of the process would
        assert TempFolders(tmp_path, "db").sweep() == ["worker-1"]
        child.kill()
    assert not folder.exists()


def test_a_folder_that_could_not_be_made_at_first_is_held_once_it_can(tmp_path: Path) -> None:
    """The disk was full when the worker started: nobody may sweep away what its jobs use afterwards."""
    (tmp_path / "db").write_text("in the way")
    mine = TempFolders(tmp_path, "db")
    mine.open("worker-1")
    (tmp_path / "db").unlink()
    (mine.root("worker-1") / "job-1").mkdir()
    assert TempFolders(tmp_path, "db").sweep() == []
    assert (tmp_path / "db" / "worker-1" / "job-1").is_dir()
    mine.close()


def test_a_folder_that_another_took_the_place_of_is_held_anew(tmp_path: Path) -> None:
    """As a disk that is mounted over it does."""
    mine = TempFolders(tmp_path, "db")
    mine.open("worker-1").rename(tmp_path / "below")
    assert mine.root("worker-1") == tmp_path / "db" / "worker-1"
    assert TempFolders(tmp_path, "db").sweep() == []
    mine.close()


def test_threads_that_find_the_folder_replaced_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """A lock that this process holds already is never waited for: the job would hang, and nobody would end it."""
    mine = TempFolders(tmp_path, "db")
    mine.open("worker-1")
    for n in range(20):
        (tmp_path / "db" / "worker-1").rename(tmp_path / f"below-{n}")
        threads = [threading.Thread(target=mine.root, args=("worker-1",), daemon=True) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert not any(thread.is_alive() for thread in threads), "a thread waits for its own process's lock"
        assert TempFolders(tmp_path, "db").sweep() == []
    mine.close()
