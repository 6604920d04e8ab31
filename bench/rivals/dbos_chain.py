"""DBOS: one workflow with three steps, started directly, which is faster than its queue; sixteen at a time."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

from dbos import DBOS, DBOSConfig

from bench.rivals.count import count

# What is to be done, for both processes: a line a turn.
TURNS = Path(os.environ["DONE_FILE"]).with_suffix(".turns")
PROCESSES = 2


@DBOS.step()
def step(job: int) -> int:
    return job


@DBOS.workflow()
def chain(job: int) -> None:
    step(job)
    step(job)
    step(job)
    count()


def prepare() -> None:
    TURNS.touch()


def fill(jobs: int) -> None:
    with TURNS.open("a") as file:
        file.write(f"{jobs}\n")


def main() -> None:
    config: DBOSConfig = {
        "name": "chain",
        "system_database_url": os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://"),
        "run_admin_server": False,
        "log_level": "ERROR",
    }
    DBOS(config=config)
    DBOS.launch()
    done = 0
    with ThreadPoolExecutor(16) as threads:
        while True:
            for jobs in TURNS.read_text().splitlines()[done:]:
                list(threads.map(chain, range(-(-int(jobs) // PROCESSES))))
                done += 1
            sleep(0.01)


if __name__ == "__main__":
    main()
