"""The fork server of a worker: has imported its workflows, has no thread and no connection, and forks children.

It alone signals and reaps them. A child is killed, with all that it started, as soon as the worker closes its end of
the child's socket; all of them are when the worker ends.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import orjson

from pipeline.observe import logs
from pipeline.worker.isolation import child, wire
from pipeline.worker.isolation.declarations import Declarations, declare_all
from pipeline.worker.isolation.processes import call_it, die_with, kill_group

OWN_SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class ForkServer:
    """``control`` brings one end of a socket for each child that is wanted; ``report`` is closed in the children."""

    def __init__(self, control: socket.socket, report: int, parent: int, told: Declarations) -> None:
        self._control, self._report, self._parent, self._told = control, report, parent, told
        self._pids: dict[int, int] = {}
        self._channels: dict[int, socket.socket] = {}
        self._woken, self._wake = socket.socketpair()
        self._woken.setblocking(False)
        self._wake.setblocking(False)
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)
        self._before: dict[signal.Signals, Any] = {}

    def serve(self) -> None:
        """Until the worker ends."""
        self._take_signals()
        alive = True
        while alive:
            ready = {fd for fd, _ in self._poll.poll()}
            # In this order: the number of a socket that was closed may be that of the next one.
            for fd in ready & self._pids.keys():
                self._poll.unregister(fd)
                kill_group(self._pids.pop(fd))
            if self._woken.fileno() in ready:
                alive = self._signalled()
            if self._control.fileno() in ready:
                alive = self._accept() and alive

    def end(self) -> None:
        """Nothing that was started here is left."""
        for pid in self._channels:
            kill_group(pid)
        os._exit(0)

    def _take_signals(self) -> None:
        """They only wake the loop. SIGTERM is the worker's death; whoever else sends it is not obeyed."""
        for number in OWN_SIGNALS:
            self._before[number] = signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        die_with(self._parent, signal.SIGTERM)

    def _signalled(self) -> bool:
        """Reap whoever has died. False if that was the worker."""
        worker_died = signal.SIGTERM in self._woken.recv(4096) and os.getppid() != self._parent
        self._reap()
        return not worker_died

    def _accept(self) -> bool:
        """Fork a child for the socket that has come. False if the worker hung up."""
        wish, fds, _, _ = socket.recv_fds(self._control, 16, 1, socket.MSG_CMSG_CLOEXEC)
        if not wish:
            return False
        for fd in fds:
            self._fork(socket.socket(fileno=fd))
        return True

    def _fork(self, channel: socket.socket) -> None:
        server = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            # Too many processes or too little memory: the worker sees the socket close, and asks again.
            traceback.print_exc()
            channel.close()
            return
        if pid == 0:
            self._become_child(server, channel)
        try:
            # Here and in the child, so that whoever is first finds the group.
            os.setpgid(pid, pid)
        except (ProcessLookupError, PermissionError):
            pass
        self._pids[channel.fileno()], self._channels[pid] = pid, channel
        self._poll.register(channel, select.POLLRDHUP)

    def _become_child(self, server: int, channel: socket.socket) -> None:
        try:
            os.setpgid(0, 0)
            die_with(server)
            call_it(b"pipeline-child")
            signal.set_wakeup_fd(-1)
            for number, handler in self._before.items():
                # None is a handler that is not Python's.
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
            for other in (self._control, self._woken, self._wake, *self._channels.values()):
                other.close()
            os.close(self._report)
            child.live(channel, self._told)
        finally:
            os._exit(1)

    def _reap(self) -> None:
        """Whoever has died, and tell its worker how."""
        while pid := _dead():
            # What it started goes with it; until it is reaped the number of its group is nobody else's.
            kill_group(pid)
            _, status = os.waitpid(pid, 0)
            channel = self._channels.pop(pid, None)
            if channel is None:
                continue
            if self._pids.pop(channel.fileno(), None) is not None:
                self._poll.unregister(channel)
            try:
                # It may have died in the middle of a line.
                last = b"\n" + wire.line(wire.DIED, os.waitstatus_to_exitcode(status))
                channel.send(last, socket.MSG_DONTWAIT)
            except OSError:
                # The worker has hung up before.
                pass
            channel.close()


def _dead() -> int | None:
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return found.si_pid if found else None


def _unfit() -> str | None:
    """Why this process must not be forked once the modules are imported; None if it may be."""
    if threading.active_count() > 1:
        names = ", ".join(thread.name for thread in threading.enumerate()[1:])
        return f"importing the workflows started threads ({names})"
    # Libraries that know about forks (OpenBLAS does) end their threads before one and start them again when needed.
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    threads = len(list(Path("/proc/self/task").iterdir()))
    return f"importing the workflows started {threads - 1} native threads" if threads > 1 else None


def _import(told: Declarations) -> str | None:
    try:
        declare_all(told)
    except BaseException as error:  # the child that imports them says the same, as its job's error
        traceback.print_exc()
        return f"the workflows could not be imported: {type(error).__name__}: {error}"
    return _unfit()


def main() -> None:
    """Import, then fork on demand. What is printed here and in the children goes to standard error."""
    boot = orjson.loads(sys.stdin.buffer.read())
    die_with(boot["parent"])
    call_it(b"pipeline-forks")
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    report = os.dup(1)
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # it is what Python opened
    logs.configure(*boot["logs"])
    # Nothing that an import makes is garbage: looking for some would cost a tenth of the time.
    gc.disable()
    unfit = None if boot["bare"] else _import(boot["declarations"])
    os.write(report, wire.line(wire.UNFIT, unfit) if unfit else wire.line(wire.READY))
    if unfit:
        os._exit(0)
    # What is there now stays: the collector of a child would only copy its pages.
    gc.collect()
    gc.freeze()
    gc.enable()
    server = ForkServer(control, report, boot["parent"], boot["declarations"])
    try:
        server.serve()
    except BaseException:  # the worker starts another one
        traceback.print_exc()
    finally:
        server.end()


if __name__ == "__main__":
    main()
