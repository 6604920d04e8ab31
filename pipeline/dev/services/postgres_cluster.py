"""The files of a private PostgreSQL server: where they lie, and how they come to be."""

import contextlib
import os
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path

from pipeline.dev.services.processes import Account, ServiceError, unprivileged_account
from pipeline.dev.services.programs import program
from pipeline.dev.services.state import State, make_folder

# Not "pipeline": PostgreSQL looks into a schema of the user's own name first, which would hide a name that is not
# qualified. Clusters that were made before have that user.
USER, FORMER_USER = "developer", "pipeline"


def prepare_cluster(folder: Path, state: State) -> Path:
    """The data folder, complete and ready for a start; created by the first call, kept by all later ones."""
    make_folder(folder)
    recorded = state.read()
    if recorded.get("initialised"):
        data = _found(folder, state, Path(recorded["place"]))
        _forget_dead_postmaster(data)
        return data
    place = reachable_place(folder, unprivileged_account())
    password = secrets.token_hex(16)
    state.update(place=str(place), password=password, user=USER)
    _initdb(place, password, unprivileged_account())
    state.update(initialised=True)
    return place / "data"


def _found(folder: Path, state: State, place: Path) -> Path:
    """The data, also after the folder was moved with them in it."""
    for known in (place, folder.resolve() / "postgres"):
        if (known / "data").is_dir():
            state.update(place=str(known))
            return known / "data"
    raise ServiceError(
        f"PostgreSQL's data folder {place / 'data'} is gone. If it was moved, move it back to there or into {folder}. "
        f"Only if nothing in it is needed any more: remove {folder} to begin with an empty one."
    )


def binary(name: str) -> str:
    """PostgreSQL's newest installed program of this name."""
    versions = Path("/usr/lib/postgresql").glob(f"*/bin/{name}")
    newest_first = sorted(versions, key=lambda path: float(path.parts[4]), reverse=True)
    return program(name, newest_first, install="postgresql")


def environment() -> dict[str, str]:
    """A clean environment: PGPORT and its like belong to the caller's other databases."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def reachable_place(folder: Path, account: Account | None) -> Path:
    """`folder`/postgres, or a folder under /var/tmp if the server's account cannot pass through to it."""
    place = folder / "postgres"
    shutil.rmtree(place, ignore_errors=True)  # left by a first start that was interrupted
    place.mkdir(mode=0o700)
    if account is None:
        return place
    os.chown(place, *account)
    reached = subprocess.run(
        ["test", "-w", place], user=account.uid, group=account.gid, extra_groups=[], cwd="/", check=False
    )
    if reached.returncode == 0:
        return place
    place.rmdir()
    elsewhere = Path(tempfile.mkdtemp(prefix="pipeline-postgres-", dir="/var/tmp"))
    os.chown(elsewhere, *account)
    return elsewhere


def _initdb(place: Path, password: str, account: Account | None) -> None:
    secret = place / "password"
    secret.touch(mode=0o600)
    secret.write_text(password)
    if account:
        os.chown(secret, *account)
    command = [binary("initdb"), "-D", str(place / "data"), "-U", USER, f"--pwfile={secret}"]
    command += ["--data-checksums", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8"]
    result = subprocess.run(
        command,
        cwd="/",
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        # Ctrl-C reaches us, not initdb: the interrupted first start is then cleared away by the next one.
        start_new_session=True,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )
    secret.unlink()
    if result.returncode:
        raise ServiceError(f"initdb could not create {place / 'data'}: {result.stderr.strip()}")


def _forget_dead_postmaster(data: Path) -> None:
    """Remove a killed server's pid file: PostgreSQL would mistake a stranger who got the pid since for that server."""
    lock = data / "postmaster.pid"
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        pid = int(lock.read_text().split()[0])
        if Path(f"/proc/{pid}/cwd").resolve() == data.resolve():
            raise ServiceError(f"Another PostgreSQL (pid {pid}) runs on {data}: stop it with 'kill -INT {pid}'.")
        lock.unlink()
