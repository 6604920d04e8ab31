"""The life of a job, in order: workflow, submit, relay, run_phase, claiming, isolate, settle, retries, sweeps."""
