"""Phases in child processes that are kept warm: forked in milliseconds, used for one job at a time, then reused.

``run`` is the worker thread's side of one attempt, ``children`` the worker's idle ones, ``forking`` the thread that
keeps the fork server alive. ``fork_server`` and ``child`` are what runs in the other processes.
"""
