"""Many that wait at once: the pace of a phase that waits a second for HTTP, and the memory of ten thousand of them."""

from __future__ import annotations

import sys
from time import monotonic, sleep

import psutil

from bench import lab
from bench.paired import Figures, Plan
from bench.systems import NOW, WORKERS, Pipeline
from pipeline.dev.services.ports import free_port

PROCESSES, PLACES = 2, 500
RUNNING = "SELECT count(*) FROM pipeline.jobs WHERE status = 'running' /* bench */"
FINISHED = "SELECT count(*) FROM pipeline.attempts WHERE finished_at > %s AND outcome = 'succeeded' /* bench */"
IN_FLIGHT = 10_000
RAMP = 8.0


def waiting(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """Jobs a second of a phase that waits a second for an answer, against its places; and how busy the cores were."""
    seconds, port = 20.0 if plan.quick else 60.0, free_port()
    settings = {"PIPELINE_WORKFLOWS": "bench.workflows.waiting", "SLOW_PORT": str(port)}
    server = [sys.executable, "-m", "bench.slow_server", str(port)]
    with lab.running(server), laboratory.place("waiting", **settings) as place:
        system = Pipeline(place, ["waiting"], plan.seconds, PROCESSES)
        try:
            system.start()
            system.submit(int(PROCESSES * PLACES * (seconds + RAMP)))
            system.crew.thaw()
            sleep(RAMP)
            begun, clock = lab.one(system.db, NOW), monotonic()
            psutil.cpu_percent()
            sleep(seconds)
            rate = int(lab.one(system.db, FINISHED, begun)) / (monotonic() - clock)
            busy = psutil.cpu_percent()
        finally:
            system.end()
    ideal = PROCESSES * PLACES
    print(f"  {rate:.0f} jobs/s of {ideal} possible ({rate / ideal:.2f}); the cores were {busy:.0f} % busy")
    return {"execution": {"waiting_jobs_per_s": round(rate), "waiting_vs_places": round(rate / ideal, 2), "cpu": busy}}


def in_flight(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """Resident memory for each of ten thousand jobs that wait in one process."""
    settings = {"PIPELINE_WORKFLOWS": "bench.workflows.waiting", "PIPELINE_ASYNC_CONCURRENCY": str(IN_FLIGHT)}
    with laboratory.place("flying", **settings) as place:
        system = Pipeline(place, ["endless"], 1.0, 1)
        try:
            before = lab.one(system.db, NOW)
            system.start()
            system.crew.thaw()
            lab.until(lambda: int(lab.one(system.db, WORKERS, before)) == 1)
            sleep(5)
            idle = _resident(system)
            system.submit(IN_FLIGHT)
            lab.until(lambda: int(lab.one(system.db, RUNNING)) >= IN_FLIGHT, 300, 0.5)
            sleep(5)
            each = (_resident(system) - idle) / IN_FLIGHT
        finally:
            system.end()
    print(f"  {each / 1024:.1f} KB for each of {IN_FLIGHT} jobs in flight")
    return {"execution": {"kb_per_job_in_flight": round(each / 1024, 1)}}


def _resident(system: Pipeline) -> int:
    return max(int(process.memory_info().rss) for process in system.family())
