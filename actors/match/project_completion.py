"""What happens when all jobs of a batch are final: the project is completed, with its counts, failures included."""

from __future__ import annotations

from sqlalchemy import Connection, text

from pipeline import Done, Job, Permanent

_LOCK = text("select id from projects where id = :project for update")
# Left behind if somebody held the task at the very moment its job ended; see views.sql.
_FOLLOW = text("""
    update tasks t set status = case j.status when 'cancelled' then 'CANCELLED' else 'FAILED' end,
        error_message = coalesce(j.error_message, 'its job is gone'), completed_at = now()
    from tasks q
        left join pipeline.keys k on k.workflow = 'match' and k.key = q.id || ':' || q.generation
        left join pipeline.jobs j on j.id = k.job_id
    where q.project_id = :project and q.status = 'QUEUED' and t.id = q.id
        and (j.id is null or j.completed_at is not null)
""")
# Another batch of the project may still be under way, or its fan-out.
_COMPLETE = text("""
    update projects p set status = 'COMPLETED', completed_at = now(), updated_at = now(), counts = (
        select jsonb_object_agg(c.what, c.n) from (
            select coalesce(t.decision, lower(t.status)) as what, count(*) as n
            from tasks t where t.project_id = p.id group by 1) as c)
    where p.id = :project and p.status = 'MATCHING'
        and not exists (select 1 from tasks t where t.project_id = p.id and t.status = 'QUEUED')
        and not exists (select 1 from pipeline.batches b where b.id = p.batch_id and b.completed_at is null)
""")


def project_completion(job: Job) -> Done:
    """Complete the project if nothing of it is under way any more; a project that is gone is left alone."""
    project = job.body.get("project_id")
    if not isinstance(project, int):
        raise Permanent("the job names no project")
    return Done(result=job.body.get("batch"), write=lambda connection: _complete(connection, project))


def _complete(connection: Connection, project: int) -> None:
    for statement in (_LOCK, _FOLLOW, _COMPLETE):
        connection.execute(statement, {"project": project})
