"""A sandbox for all tests here, and the policy that lets them reach it and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipeline.http.addresses import AddressPolicy
from sandbox import Sandbox, running_sandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    with running_sandbox() as running:
        yield running


@pytest.fixture
def policy(sandbox: Sandbox) -> AddressPolicy:
    return AddressPolicy(allowed_hosts=frozenset({sandbox.url.removeprefix("http://")}))
