"""Systems under measurement: this project's workers, and a peer's.

Both have their turn in the same way: their processes are frozen, jobs are queued, the processes go on, and the time
runs until the last job's end. They are warm from the first round on.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic, sleep, time
from typing import Any, Protocol, TypeVar

import psutil
from sqlalchemy import create_engine

from bench import lab
from bench.paired import RATE, Measured
from pipeline import submit_many

# RabbitMQ refuses more than 10,000 messages a queue (rabbitmq/definitions.json).
FEWEST, MOST = 300, 8000
STALLED = 30.0
WORKERS = "SELECT count(*) FROM pipeline.workers WHERE started_at > %s /* bench */"
FINISHED = "SELECT count(*) FROM pipeline.attempts WHERE finished_at > %s AND outcome = 'succeeded' /* bench */"
LAST_END = "SELECT max(finished_at) FROM pipeline.attempts WHERE finished_at > %s /* bench */"
MESSAGES = "SELECT sum(send - 1) FROM pipeline.jobs WHERE created_at >= %s /* bench */"
NOW = "SELECT clock_timestamp() /* bench */"


class Size:
    """How many jobs a turn has: what the best turn so far would do in ``seconds``."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._best = seconds, 0.0

    @property
    def jobs(self) -> int:
        return max(FEWEST, min(MOST, int(self._best * self._seconds)))

    def learn(self, rate: float) -> None:
        self._best = max(self._best, rate)


class System(Protocol):
    """What has turns."""

    def start(self) -> None: ...

    def turn(self) -> Measured: ...

    def end(self) -> None: ...


Warm = TypeVar("Warm", bound=System)


class Pipeline:
    """This project, as its users start it."""

    def __init__(self, place: lab.Place, workflows: Sequence[str], seconds: float, processes: int) -> None:
        self.place = place
        self._workflows, self._processes = workflows, processes
        self._size = Size(seconds)
        self.db = place.database()
        self.engine = create_engine(place.url.replace("postgresql://", "postgresql+psycopg://"))
        self.crew = lab.Crew(place)

    def start(self) -> None:
        before = lab.one(self.db, NOW)
        self.crew.start(lab.dramatiq("pipeline.actors", self._processes))
        _wait(self.crew, lambda: int(lab.one(self.db, WORKERS, before)), self._processes)
        self.crew.freeze()

    def end(self) -> None:
        self.crew.end()
        self.db.close()
        self.engine.dispose()

    def turn(self) -> Measured:
        """Work off as many jobs as take about ``seconds``; what a phase costs, as the servers count it."""
        before = lab.one(self.db, NOW)
        jobs = self.submit(self._size.jobs)
        statements, wal, begun = lab.statements(self.db), lab.wal_end(self.db), lab.one(self.db, NOW)
        self.crew.thaw()
        self.wait_for(jobs, begun)
        self.crew.freeze()
        rate = jobs / (lab.one(self.db, LAST_END, begun) - begun).total_seconds()
        self._size.learn(rate)
        phases = 3 * jobs
        return {
            RATE: rate,
            "statements": (lab.statements(self.db) - statements) / phases,
            "wal_bytes": lab.wal_since(self.db, wal) / phases,
            "messages": float(lab.one(self.db, MESSAGES, before)) / phases,
            "threads": self.threads(),
        }

    def window(self, seconds: float) -> Measured:
        """The pace while there is more than enough to do, by finished phases, three of them a job."""
        begun = lab.one(self.db, NOW)
        self.crew.thaw()
        sleep(seconds)
        self.crew.freeze()
        took = (lab.one(self.db, NOW) - begun).total_seconds()
        return {RATE: int(lab.one(self.db, FINISHED, begun)) / 3 / took}

    def pace(self) -> float:
        """Jobs a second if they are submitted while the workers work."""
        begun = lab.one(self.db, NOW)
        self.crew.thaw()
        jobs = self.submit(self._size.jobs)
        self.wait_for(jobs, begun)
        self.crew.freeze()
        return jobs / float((lab.one(self.db, LAST_END, begun) - begun).total_seconds())

    def submit(self, jobs: int) -> int:
        """Spread over the workflows, one after the other; how many there are now."""
        each = max(1, jobs // len(self._workflows))
        group = 10_000 if len(self._workflows) == 1 else 1
        with self.engine.begin() as connection:
            for start in range(0, each, group):
                for workflow in self._workflows:
                    submit_many(connection, workflow, [lab.BODY] * min(group, each - start))
        return each * len(self._workflows)

    def wait_for(self, jobs: int, since: Any) -> None:
        """Until so many jobs have ended. Their history is asked: it has no dead rows, whoever holds a snapshot."""
        _wait(self.crew, lambda: int(lab.one(self.db, FINISHED, since)), 3 * jobs)

    def threads(self) -> int:
        """Of the worker process that has most."""
        return max(int(process.num_threads()) for process in self.family())

    def family(self) -> list[psutil.Process]:
        (main,) = self.crew.processes
        return [psutil.Process(main.pid), *psutil.Process(main.pid).children(recursive=True)]


class Peer:
    """Somebody else's workers, and a process that fills their queue."""

    def __init__(self, place: lab.Place, filler: list[str], *workers: list[str], seconds: float) -> None:
        self.place = place
        self._commands, self._workers = filler, workers
        self._size = Size(seconds)
        self._filler: subprocess.Popen[str] | None = None
        self.crew = lab.Crew(place)

    def start(self) -> None:
        self.place.done.touch()
        self._filler = subprocess.Popen(
            self._commands,
            cwd=lab.ROOT,
            env={**self.place.environment, "FILLS": "yes"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer("start")
        self.crew.start(*self._workers)

    def end(self) -> None:
        self.crew.end()
        if self._filler:
            self._filler.kill()
            self._filler.wait()

    def ask(self, *order: Any) -> Any:
        """Have the filler do something, and wait for its answer."""
        assert self._filler is not None
        assert self._filler.stdin is not None
        self._filler.stdin.write(json.dumps(order) + "\n")
        self._filler.stdin.flush()
        return self._answer(order[0])

    def turn(self) -> Measured:
        """As ours. A peer may lose jobs, which is its users' trouble and not the benchmark's: the turn is repeated."""
        for _ in range(3):
            try:
                return self._turn()
            except Stalled as stalled:
                print(f"  {self.place.name}: {stalled}\n  once more", flush=True)
                self.crew.freeze()
        raise Stalled(f"{self.place.name} does not finish its jobs")

    def _turn(self) -> Measured:
        jobs, before = self._size.jobs, self._done()
        self.ask("fill", jobs)
        begun = time()
        self.crew.thaw()
        _wait(self.crew, self._done, before + jobs, pause=0.01)
        rate = jobs / (time() - begun)
        self.crew.freeze()
        self._size.learn(rate)
        return {RATE: rate}

    def pace(self) -> float:
        """As ours: whoever sends takes processor time from those who work."""
        jobs, before, begun = self._size.jobs, self._done(), time()
        self.crew.thaw()
        self.ask("fill", jobs)
        _wait(self.crew, self._done, before + jobs, pause=0.01)
        self.crew.freeze()
        return jobs / (time() - begun)

    def _done(self) -> int:
        return self.place.done.stat().st_size

    def _answer(self, order: str) -> Any:
        assert self._filler is not None
        assert self._filler.stdout is not None
        line = self._filler.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.place.name} could not {order}: see above")
        return json.loads(line)


class Stalled(Exception):
    """Jobs were lost, or wait for something that does not come."""


@contextmanager
def pipeline(
    laboratory: lab.Laboratory,
    module: str,
    *workflows: str,
    seconds: float,
    name: str = "",
    processes: int = lab.PROCESSES,
    **settings: str,
) -> Iterator[Pipeline]:
    """This project's workers with the workflows of ``bench.workflows.<module>``."""
    settings["PIPELINE_WORKFLOWS"] = f"bench.workflows.{module}"
    with (
        laboratory.place(name or module, **settings) as place,
        warm(Pipeline(place, workflows or (module,), seconds, processes)) as system,
    ):
        yield system


@contextmanager
def dramatiq(laboratory: lab.Laboratory, peer: str, *, seconds: float) -> Iterator[Peer]:
    """A peer of ``bench.peers``."""
    filler = [sys.executable, "-m", "bench.rivals.filler", "bench.peers"]
    with (
        laboratory.place(peer, PEER=peer) as place,
        warm(Peer(place, filler, lab.dramatiq("bench.peers"), seconds=seconds)) as system,
    ):
        yield system


@contextmanager
def warm(system: Warm) -> Iterator[Warm]:
    """Started, and frozen after turns that do not count: in the first all parts come up, the second finds the pace."""
    try:
        system.start()
        system.turn()
        system.turn()
        yield system
    finally:
        system.end()


def _wait(crew: lab.Crew, counted: Callable[[], int], wanted: int, pause: float = 0.1) -> None:
    """Until ``wanted`` are counted; Stalled if there is no progress for half a minute."""
    moved, last = monotonic(), -1
    while (now := counted()) < wanted:
        crew.check()
        if now != last:
            moved, last = monotonic(), now
        elif monotonic() - moved > STALLED:
            raise Stalled(f"{wanted - now} of {wanted} are missing; its log ends with:\n{crew.last_words()}")
        sleep(pause)
