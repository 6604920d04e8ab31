"""The servers that the pipeline is tried on: docs/supported-versions.md has the results."""

# The oldest of each.
SUPPORTED = {"PostgreSQL": (15,), "RabbitMQ": (3, 10)}


def supported(server: str, version: str) -> tuple[bool, str, str]:
    """Whether this version is new enough, what it is, and what to do if it is not."""
    oldest = SUPPORTED[server]
    wanted = ".".join(map(str, oldest))
    return (
        _numbers(version) >= oldest,
        f"{server} {version}",
        f"upgrade it: the pipeline is tested with {wanted} and newer",
    )


def _numbers(version: str) -> tuple[int, ...]:
    """Up to the first part that is none: packagers add words."""
    numbers: list[int] = []
    for part in version.replace("-", ".").replace("+", ".").split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
