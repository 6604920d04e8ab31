"""DBOS: one workflow with three steps, started directly, which is faster than its queue; sixteen at a time."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor

from dbos import DBOS, DBOSConfig

from bench.rivals.count import begin, count


@DBOS.step()
def step(job: int) -> int:
    return job


@DBOS.workflow()
def chain(job: int) -> None:
    begin()
    step(job)
    step(job)
    step(job)
    count()


def main() -> None:
    config: DBOSConfig = {
        "name": "chain",
        "system_database_url": os.environ["PEER_DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://"),
        "run_admin_server": False,
        "log_level": "ERROR",
    }
    DBOS(config=config)
    DBOS.launch()
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(chain, range(int(sys.argv[1]))))
    DBOS.destroy()


if __name__ == "__main__":
    main()
