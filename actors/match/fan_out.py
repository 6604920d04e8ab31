"""Fan-out as a job of its own, for projects too large for one transaction: a thousand tasks at a time."""

from __future__ import annotations

from sqlalchemy import Connection, text

from pipeline import Done, Job, seal_batch

PAGE = 1000
# Tasks of an earlier round only: a page that was queued before a crash is not queued again.
OPEN = "project_id = :project and round < :round and (not :unfinished or status <> 'COMPLETED')"
_PAGE_END = f"""select max(id) as last, count(*) as size from (
    select id from tasks where {OPEN} and id > :after order by id limit {PAGE}) as page"""  # noqa: S608
_QUEUE = f"""update tasks set status = 'QUEUED', round = :round
    from (select set_config('pipeline.traceparent', :trace, true)) as traced
    where {OPEN} and id > :after and id <= :last"""  # noqa: S608
_OPEN_BATCH = text("select batch_id from projects where id = :project and round = :round for update")


def fan_out(job: Job) -> Done:
    """Queue every open task of the project's round, then seal its batch. Starting again doubles nothing."""
    values = {"project": job.body["project_id"], "round": job.body["round"], "unfinished": job.body["unfinished"]}
    after = queued = 0
    while True:
        page = job.read(_PAGE_END, after=after, **values)[0]
        if not page["size"]:
            return Done(result={"queued": queued}, write=lambda connection: _seal(connection, values))
        job.keep(_QUEUE, after=after, last=page["last"], trace=job.traceparent, **values)
        after, queued = page["last"], queued + page["size"]
        job.progress(queued, job.body["total"])


def _seal(connection: Connection, values: dict[str, int]) -> None:
    batch = connection.execute(_OPEN_BATCH, values).scalar_one_or_none()
    if batch is not None:
        seal_batch(connection, batch)
