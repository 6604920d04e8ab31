"""Commands that run things: services, migrate, up, relay, doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pipeline.declare.extras import require
from pipeline.dev import services
from pipeline.front.cli.workflows import need_workflows

Folder = Annotated[Path, typer.Option(help="Where the private servers keep their data.")]
out = Console(stderr=True)
private = typer.Typer(no_args_is_help=True, help="Private PostgreSQL and RabbitMQ, on free ports, data in one folder.")


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.add_typer(private, name="services")
    for command in (up, migrate, relay, doctor):
        app.command()(command)


@private.command("start")
def services_start(folder: Folder = services.FOLDER) -> None:
    """Start them (about ten seconds); they keep running after this command ends."""
    with out.status("starting PostgreSQL and RabbitMQ …"):
        servers = services.start(folder)
    login = servers.management_user
    out.print(
        f"running. Management UI: {servers.management_url}  user {login.name}, password {login.password}",
        highlight=False,
    )
    out.print('for other shells: eval "$(pipeline services env)"', highlight=False)


@private.command("stop")
def services_stop(folder: Folder = services.FOLDER) -> None:
    """Stop them; their data is kept."""
    services.stop(folder)
    out.print("stopped")


@private.command("env")
def services_env(folder: Folder = services.FOLDER) -> None:
    """Print export lines for a shell, and the management UI's address."""
    servers = services.running(folder)
    if servers is None:
        raise services.ServiceError('no private servers run in this folder: run "pipeline services start"')
    for name, value in services.environment(servers).items():
        print(f"export {name}='{value}'")
    print(f"# management UI: {servers.management_url} (user {servers.management_user.name})")


def migrate(
    grant: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=ROLE", help="Give a PostgreSQL role the rights of a client, worker or operator; repeatable."
        ),
    ] = None,
    revoke: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE", help="Take all rights on the engine from a PostgreSQL role; repeatable."),
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Take everything of the engine out of the database, all jobs included.")
    ] = False,
) -> None:
    """Bring the database up to date, and put this code's chains and options in force. Safe while workers run."""
    from pipeline.store import roles

    if remove:
        _remove()
        return
    grants = [roles.parse(wish) for wish in grant or ()]
    need_workflows()
    from pipeline import settings
    from pipeline.declare.registry import workflows
    from pipeline.maintenance.move import undeclared
    from pipeline.store import database
    from pipeline.worker.prepare import upgrade

    changed = upgrade(settings.get())
    out.print("the database was upgraded" if changed else "the database is up to date", highlight=False)
    if not workflows():
        out.print("no workflow is loaded: set PIPELINE_WORKFLOWS, for example PIPELINE_WORKFLOWS=shop.jobs")
    for workflow in workflows().values():
        out.print(f"  {workflow.name}: {' → '.join(phase.spec.name for phase in workflow.phases)}", highlight=False)
    _change_rights(grants, revoke or [])
    for queue, jobs, _ in undeclared(database.engine()):
        out.print(
            f'{jobs} jobs are in {queue}, which no workflow has any more: run "pipeline move {queue} PHASE"',
            highlight=False,
        )


def _change_rights(grants: list[tuple[str, str]], revokes: list[str]) -> None:
    from pipeline.store import database, roles

    with database.engine().begin() as connection:
        for role in revokes:
            roles.revoke(connection, role)
        for kind, role in grants:
            roles.grant(connection, kind, role)
    for role in revokes:
        _say(f"revoked: {role} has no rights on the engine any more")
    for kind, role in grants:
        _say(f"granted: {role} is a {kind}; {roles.MEANING[kind]}")


def _remove() -> None:
    from pipeline.store import database
    from pipeline.store.migrate import remove

    removed = remove(database.engine())
    out.print("the engine's tables and functions are gone" if removed else "there was nothing to remove")


def up(
    processes: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 4,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each worker process.")] = 8,
    with_sandbox: Annotated[bool, typer.Option("--sandbox", help="Also run the sandbox of outside systems.")] = False,
    folder: Folder = services.FOLDER,
) -> None:
    """Start everything in the foreground; Ctrl-C stops it in order."""
    require("api", "pipeline up, which serves the dashboard,")
    need_workflows()
    from pipeline.dev.up import run

    run(processes=processes, threads=threads, with_sandbox=with_sandbox, folder=folder, say=_say)


def relay() -> None:
    """Run a relay alone: sends what waits, heals what broke. Workers carry one too; two do no harm."""
    from pipeline.front.cli.relay import run

    run(say=_say)


def doctor() -> None:
    """Check servers, versions, migrations and queues, and say how to fix each finding."""
    need_workflows()
    from pipeline.dev.doctor import examine

    findings = examine()
    for finding in findings:
        out.print(("[green]ok[/green]    " if finding.well else "[red]wrong[/red] ") + finding.what, highlight=False)
        if not finding.well:
            out.print(f"        → {finding.cure}", highlight=False, markup=False)
    raise typer.Exit(0 if all(finding.well for finding in findings) else 1)


def _say(text: str) -> None:
    out.print(text, highlight=False, markup=False)
