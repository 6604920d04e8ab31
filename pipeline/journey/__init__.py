"""The life of a job, in reading order: submit, relay, message, execute, claim, settle, advance."""
