"""The worker's side of its fork server: started by one permanent thread, and started again if it dies."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable
from time import monotonic

import orjson

from pipeline.observe import logs
from pipeline.worker.essential import essential_thread
from pipeline.worker.isolation import wire
from pipeline.worker.isolation.declarations import declarations

log = logs.get("pipeline.worker")

# Between two looks at what else there is to do.
LOOK = 15.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0


class Forking:
    """Asks the fork server for children, and keeps it alive.

    A death signal follows the thread that forked, so that the thread which starts the server lives as long as the
    worker. Wishes wait in a socket that outlives the server. ``every_look`` is called now and then.
    """

    def __init__(self, log_format: str, log_level: str, every_look: Callable[[], None], look: float = LOOK) -> None:
        self._logs = (log_format, log_level)
        self._every_look, self._look = every_look, look
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._woken = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._process: subprocess.Popen[bytes] | None = None
        self._bare = self._ready = False
        self._pause, self._not_before = 0.0, 0.0
        self._wanted = self._stopping = False
        self._thread = essential_thread("pipeline-forking", self._run)

    def start(self, *, ahead: bool) -> None:
        """``ahead``: the fork server is started now, and not when the first child is wanted."""
        self._wanted = ahead
        self._thread.start()

    def stop(self) -> None:
        """The fork server ends, and its children with it."""
        self._stopping = True
        self._wake()
        self._thread.join(5)

    def fork(self) -> socket.socket:
        """The worker's end of the socket of a new child, which may still have to be born: nothing is waited for."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._ours, [b"fork"], [theirs.fileno()])
        if not self._wanted:
            self._wanted = True
            self._wake()
        return ours

    def _wake(self) -> None:
        os.eventfd_write(self._woken, 1)

    def _run(self) -> None:
        while not self._stopping:
            if self._process is None and self._wanted and monotonic() >= self._not_before:
                self._launch()
            self._wait()
            self._every_look()
        self._hang_up()

    def _launch(self) -> None:
        self._ready = False
        boot = {"parent": os.getpid(), "bare": self._bare, "logs": self._logs, "declarations": declarations()}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pipeline.worker.isolation.fork_server", str(self._theirs.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[self._theirs.fileno()],
                start_new_session=True,
            )
            assert self._process.stdin is not None
            with self._process.stdin as orders:
                orders.write(orjson.dumps(boot))
        except BrokenPipeError:
            # It died at once, which its other pipe tells.
            pass
        except OSError as error:
            log.error("the fork server of isolated phases could not be started; trying again", error=str(error))
            self._put_off()

    def _wait(self) -> None:
        """For a word of the server, for somebody who wakes us, or until it is time to look."""
        watched = select.poll()
        watched.register(self._woken, select.POLLIN)
        if self._process is not None and self._process.stdout is not None:
            watched.register(self._process.stdout, select.POLLIN)
        until_launch = self._not_before - monotonic()
        patience = until_launch if self._process is None and until_launch > 0 else self._look
        for fd, _ in watched.poll(1000 * min(patience, self._look)):
            if fd == self._woken:
                os.eventfd_read(fd)
            else:
                self._hear()

    def _hear(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        # A few words at once, of which none is longer than a pipe takes whole.
        text = self._process.stdout.readline()
        if not text:
            self._bury(self._process)
            return
        kind, reason = wire.read(text)
        if kind == wire.UNFIT:
            self._bare = True
            log.warning("isolated phases start slowly: each child process imports the workflows itself", reason=reason)
        else:
            self._ready, self._pause = True, 0.0

    def _bury(self, process: subprocess.Popen[bytes]) -> None:
        """It is dead, and its children with it. One that died before it was ready may have died of an import."""
        process.kill()
        code = process.wait()
        assert process.stdout is not None
        process.stdout.close()
        self._process = None
        if code != 0 or self._ready:
            log.error("the fork server of isolated phases died; another one is started", exit_code=code)
        if code != 0 and not self._ready:
            if self._bare:
                self._put_off()
            self._bare = True

    def _put_off(self) -> None:
        self._pause = min(max(2 * self._pause, FIRST_PAUSE), LONGEST_PAUSE)
        self._not_before = monotonic() + self._pause

    def _hang_up(self) -> None:
        self._ours.close()
        self._theirs.close()
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
