"""Commands that run things: services, migrate, up, relay, sandbox, doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pipeline import services

Folder = Annotated[Path, typer.Option(help="Where the private servers keep their data.")]
out = Console(stderr=True)
private = typer.Typer(no_args_is_help=True, help="Private PostgreSQL and RabbitMQ, on free ports, data in one folder.")


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.add_typer(private, name="services")
    for command in (up, migrate, relay, sandbox, doctor):
        app.command()(command)


@private.command("start")
def services_start(folder: Folder = services.FOLDER) -> None:
    """Start them (about ten seconds); they go on after this command ends."""
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
    """Stop them; their data stay."""
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


def migrate() -> None:
    """Bring the database up to date, and put this code's chains and options in force. Safe while workers run."""
    import pipeline.actors  # noqa: F401  declares the workflows
    from db.migrate import migrate as upgrade
    from pipeline import settings
    from pipeline.flow import database
    from pipeline.flow.move import undeclared
    from pipeline.flow.prepare import reach
    from pipeline.flow.register import register
    from pipeline.flow.workflow import workflows

    config = settings.get()
    reach(database.engine(), config, patience=10)
    changed = upgrade(database.engine())
    with database.engine().begin() as connection:
        register(connection, workflows().values(), config.stale_seconds)
    out.print("the database was upgraded" if changed else "the database is up to date", highlight=False)
    for workflow in workflows().values():
        out.print(f"  {workflow.name}: {' → '.join(actor.spec.name for actor in workflow.phases)}", highlight=False)
    for queue, jobs, _ in undeclared(database.engine()):
        out.print(f'{jobs} jobs are in {queue}, which no workflow has any more: run "pipeline move {queue} PHASE"',
                  highlight=False)  # fmt: skip


def up(
    processes: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 4,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each worker process.")] = 8,
    with_sandbox: Annotated[bool, typer.Option("--sandbox", help="Also run the sandbox of outside systems.")] = False,
    folder: Folder = services.FOLDER,
) -> None:
    """Start everything in the foreground; Ctrl-C stops it in order."""
    from pipeline.front.up import run

    run(processes=processes, threads=threads, with_sandbox=with_sandbox, folder=folder, say=_say)


def relay() -> None:
    """Run a relay alone: sends what waits, heals what broke. Workers carry one too; two do no harm."""
    from pipeline.front.relay_alone import run

    run(say=_say)


def sandbox(port: int = 8099, host: str = "127.0.0.1") -> None:
    """Run the sandbox that speaks for the outside systems (see docs/sandbox.md)."""
    from pipeline.sandbox.server import serve

    serve(host, port)


def doctor() -> None:
    """Check servers, versions, migrations and queues, and say how to mend each finding."""
    from pipeline.front.doctor import examine

    findings = examine()
    for finding in findings:
        out.print(("[green]ok[/green]    " if finding.well else "[red]wrong[/red] ") + finding.what, highlight=False)
        if not finding.well:
            out.print(f"        → {finding.cure}", highlight=False, markup=False)
    raise typer.Exit(0 if all(finding.well for finding in findings) else 1)


def _say(text: str) -> None:
    out.print(text, highlight=False, markup=False)
