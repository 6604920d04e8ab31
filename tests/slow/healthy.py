"""``python -m tests.slow.healthy --minutes 20``: long jobs on two threads, default settings, no management API.

Prints how many of them were sent again while their messages waited in a healthy queue; none may be.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path

from pipeline import settings
from pipeline.dev import services
from tests import shared
from tests.place import OPTIONAL, Place

SENT_AGAIN = "SELECT count(*) FROM pipeline.jobs WHERE phase = 'first' AND send > 1"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60, help="how long each job runs")
    wish = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="pipeline-healthy-"))
    servers = services.start(folder / "servers")
    try:
        name = shared.migrated_template(servers, folder)
        servers.rabbitmq.create_vhost(name)
        place = Place(servers, name, folder)
        place.unset = OPTIONAL
        os.environ.update(place.environment())
        settings.get.cache_clear()
        _watch(place, wish)
        place.close()
    finally:
        shared.end(folder / "servers")
        shutil.rmtree(folder, ignore_errors=True)


def _watch(place: Place, wish: argparse.Namespace) -> None:
    from pipeline import submit_many

    place.worker(threads=2)
    submit_many(None, "single", [{"do": "ledger"}] * 2)
    submit_many(None, "triple", [{"seconds": wish.seconds}] * wish.jobs)
    began = time.monotonic()
    while (passed := time.monotonic() - began) < wish.minutes * 60:
        time.sleep(min(30, wish.minutes * 60 - passed + 0.1))
        again = place.logs().count("they are sent again")
        print(
            f"{passed / 60:5.1f} min  {place.statuses()}  sent again: {place.count(SENT_AGAIN)}, said: {again}",
            flush=True,
        )


if __name__ == "__main__":
    main()
