"""Faults of the workers' disks."""

from __future__ import annotations

from chaos.disk import cannot_mount, filled, mount, unmount
from chaos.fault import Hits, Scene, fault
from chaos.observer import Deadline, until

# As the workers' heartbeats bring it.
ERRORS = "SELECT sum((counters->>'cache.error')::int) FROM pipeline.workers"


@fault("temp folder on a full disk", explains=["retried"], impossible=cannot_mount)
def full_temp(scene: Scene) -> Hits:
    """A small file system is put over the temp folder, and is full; the phases' errors cost them their own budget."""
    folder = scene.stage.temp_folder
    if said := mount(folder, "16k"):
        return Hits(0, f"mounts: {said}")
    try:
        scene.pause(4, 7)
    finally:
        unmount(folder)
    return Hits(1, "mount")


@fault("cache folder on a full disk", impossible=cannot_mount)
def full_cache(scene: Scene) -> Hits:
    """The file system of the cache, whose files are open, runs full: jobs do without it, and nothing is spent."""
    if scene.stage.no_small_disk:
        return Hits(0, f"disks: {scene.stage.no_small_disk}")
    before = scene.observer.one(ERRORS) or 0
    with filled(scene.stage.cache_folder) as taken:
        scene.pause(4, 7)
    done = Hits(taken, "bytes taken")
    if scene.stage.subject.has_ledger:
        try:
            until(lambda: (scene.observer.one(ERRORS) or 0) > before, 10, "a job to notice that the cache is full")
        except Deadline as late:
            done.complaints.append(str(late))
    return done
