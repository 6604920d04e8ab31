"""The files and the environment of a private RabbitMQ node, so that it shares nothing with another on the machine."""

import json
import os
import secrets
import shutil
import subprocess
from pathlib import Path
from typing import Any

from pipeline.dev.services.ports import LOOPBACK, free_port
from pipeline.dev.services.programs import program
from pipeline.dev.services.state import State, make_folder

# Of the folder rabbitmq/ of the project, which a container uses, too: links in a checkout, files in a wheel.
TEMPLATES = Path(__file__).parent / "templates"
VHOST = "pipeline"
PORTS = ("amqp_port", "management_port", "epmd_port", "dist_port")
# pipeline and operator are the template's users; owner exists on private nodes only, to create and delete vhosts.
USERS = ("pipeline", "operator", "owner")


def prepare_node(folder: Path, state: State) -> Path:
    """Write the node's own copy of the configuration and return its home; identity and ports survive restarts."""
    make_folder(folder)
    recorded = state.read()
    passwords = recorded.get("passwords") or {user: secrets.token_hex(16) for user in USERS}
    node = recorded.get("node") or f"pipeline-{secrets.token_hex(4)}@localhost"
    recorded = state.update(passwords=passwords, node=node, **_free_ports(recorded))
    home = folder / "rabbitmq"
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "conf.d").mkdir(exist_ok=True)
    cookie = home / ".erlang.cookie"
    if not cookie.exists():
        _write(cookie, secrets.token_hex(16))
        cookie.chmod(0o400)  # Erlang refuses a cookie that others could read
    shutil.copyfile(TEMPLATES / "enabled_plugins", home / "enabled_plugins")
    _write(home / "definitions.json", json.dumps(_definitions(passwords), indent=2))
    _write(home / "rabbitmq.conf", _configuration(home, recorded))
    return home


def server_script() -> str:
    """The package's raw server script: the one in PATH would switch to the user `rabbitmq`."""
    root = Path("/usr/lib/rabbitmq")
    places = [root / "bin/rabbitmq-server", *root.glob("lib/*/sbin/rabbitmq-server")]
    return program("rabbitmq-server", places, install="rabbitmq-server")


def control_script() -> str:
    """`rabbitmqctl` of the same installation."""
    return str(Path(server_script()).with_name("rabbitmqctl"))


def installed_version() -> str:
    """Of the node that would be started."""
    told = subprocess.run([control_script(), "version"], capture_output=True, text=True, check=True)
    return told.stdout.split("\n")[-2]  # Erlang may warn before it


def epmd_program() -> str:
    """Erlang's port mapper."""
    return program("epmd", Path("/usr/lib/erlang").glob("erts-*/bin/epmd"), install="rabbitmq-server")


def node_environment(home: Path, recorded: dict[str, Any]) -> dict[str, str]:
    """Everything the server script reads, so that nothing comes from /etc/rabbitmq or the caller's environment."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C.UTF-8",
        "HOME": str(home),
        "ERL_EPMD_ADDRESS": LOOPBACK,
        "ERL_EPMD_PORT": str(recorded["epmd_port"]),
        "detached": "true",  # the script becomes the Erlang machine, so that its pid is the server's
        "RABBITMQ_NODENAME": recorded["node"],
        "RABBITMQ_DIST_PORT": str(recorded["dist_port"]),
        "RABBITMQ_MNESIA_BASE": str(home / "data"),
        "RABBITMQ_LOG_BASE": str(home / "log"),
        "RABBITMQ_LOGS": "-",  # to the output, which goes to our one log file
        "RABBITMQ_PID_FILE": str(home / "pid"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
        "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
        "RABBITMQ_CONFIG_FILES": str(home / "conf.d"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(home / "none.config"),
        "RABBITMQ_CONF_ENV_FILE": str(home / "none.conf"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": " ".join(
            [
                "+S 2:2 +sbwt none",  # two schedulers that do not spin leave the machine to the workers
                "-rabbit quorum_tick_interval 1000",  # quorum queues, too, report their counts every second
                "-kernel inet_dist_use_interface {127,0,0,1}",
            ]
        ),
    }


def policies() -> list[dict[str, Any]]:
    """The template's policies, for vhosts made later."""
    found: list[dict[str, Any]] = json.loads((TEMPLATES / "definitions.json").read_text())["policies"]
    return found


def _definitions(passwords: dict[str, str]) -> dict[str, Any]:
    text = (TEMPLATES / "definitions.json").read_text()
    for user, password in passwords.items():
        text = text.replace(f"@{user.upper()}_PASSWORD@", password)
    definitions: dict[str, Any] = json.loads(text)
    definitions["users"].append({"name": "owner", "password": passwords["owner"], "tags": "administrator"})
    return definitions


def _configuration(home: Path, recorded: dict[str, Any]) -> str:
    return (
        (TEMPLATES / "rabbitmq.conf").read_text()
        + f"""
# This node's own part, written at every start.
listeners.tcp.1 = {LOOPBACK}:{recorded["amqp_port"]}
management.tcp.ip = {LOOPBACK}
management.tcp.port = {recorded["management_port"]}
load_definitions = {home / "definitions.json"}
vm_memory_high_watermark.absolute = 2GB
disk_free_limit.absolute = 50MB
# Statistics of the last second instead of the last five, for tests and for people who watch.
collect_statistics_interval = 1000
management.sample_retention_policies.global.minute = 1
management.sample_retention_policies.basic.minute = 1
management.sample_retention_policies.detailed.minute = 1
"""
    )


def _free_ports(recorded: dict[str, Any]) -> dict[str, int]:
    chosen: dict[str, int] = {}
    for name in PORTS:
        preferred: int | None = recorded.get(name)
        # Our epmd may still be there after a kill, and then keeps its port.
        port = preferred if preferred and name == "epmd_port" else free_port(preferred)
        while port in chosen.values():
            port = free_port()
        chosen[name] = port
    return chosen


def _write(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
