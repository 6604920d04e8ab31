"""The policy that lets tests reach the sandbox and nothing else."""

from __future__ import annotations

import pytest

from pipeline.http.addresses import AddressPolicy
from sandbox import Sandbox


@pytest.fixture
def policy(sandbox: Sandbox) -> AddressPolicy:
    return AddressPolicy(allowed_hosts=frozenset({sandbox.url.removeprefix("http://")}))
