"""One worker process: how it starts, stays alive, runs phases and stops."""
