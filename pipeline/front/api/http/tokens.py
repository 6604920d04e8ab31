"""The tokens of PIPELINE_API_TOKENS, kept as hashes, and sessions for them. No secret is ever printed."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from time import time
from typing import Literal, get_args

from pydantic import SecretStr

from pipeline.declare.errors import BadInput

Role = Literal["viewer", "operator"]
COOKIE = "pipeline_session"
SHORTEST = 16
SESSION_SECONDS = 12 * 3600
HASHED = re.compile(r"sha256:([0-9a-f]{64})")


class Tokens:
    """Compares in constant time. A session ends when its token is taken away, and when this process ends."""

    def __init__(self, roles: dict[bytes, Role]) -> None:
        self._roles = roles
        # Made anew by every process: who can read the hashes cannot sign a session with them.
        self._key = secrets.token_bytes(32)

    def __repr__(self) -> str:
        return f"<{len(self._roles)} tokens>"

    def role_of(self, token: str) -> Role | None:
        """The token's role; every known token is compared, so that the time taken tells nothing."""
        found: Role | None = None
        for known, role in self._roles.items():
            if hmac.compare_digest(known, _hash(token)):
                found = role
        return found

    def new_session(self, token: str) -> str:
        """A cookie's value: when it ends, a number used once, and the signature of both."""
        until = f"{int(time()) + SESSION_SECONDS}.{secrets.token_urlsafe(12)}"
        return f"{until}.{self._signature(_hash(token), until)}"

    def role_of_session(self, session: str) -> Role | None:
        """The role of a session that one of our tokens signed and that has not ended."""
        until, _, signature = session.rpartition(".")
        ends = until.partition(".")[0]
        found: Role | None = None
        for known, role in self._roles.items():
            if hmac.compare_digest(self._signature(known, until).encode(), signature.encode()):
                found = role
        # The signature was checked first: only an end that we wrote ourselves is read.
        return found if found and ends.isascii() and ends.isdigit() and int(ends) > time() else None

    def _signature(self, known: bytes, message: str) -> str:
        return hmac.digest(self._key + known, f"pipeline session {message}".encode("utf-8", "replace"), "sha256").hex()


def parse_tokens(setting: SecretStr | None) -> Tokens | None:
    """Read ``role:token`` or ``role:sha256:HASH``, comma-separated; what is wrong is said without saying a token."""
    if setting is None or not setting.get_secret_value().strip():
        return None
    roles: dict[bytes, Role] = {}
    for place, part in enumerate(setting.get_secret_value().split(","), 1):
        role, _, token = part.strip().partition(":")
        if role not in get_args(Role) or len(token) < SHORTEST or not (token.isascii() and token.isprintable()):
            raise BadInput(
                f"PIPELINE_API_TOKENS: entry {place} must look like viewer:TOKEN, operator:TOKEN or "
                f"operator:sha256:HASH, with a token of at least {SHORTEST} plain characters; "
                "make one with: openssl rand -hex 24"
            )
        hashed = HASHED.fullmatch(token)
        roles[bytes.fromhex(hashed[1]) if hashed else _hash(token)] = "operator" if role == "operator" else "viewer"
    return Tokens(roles)


def _hash(token: str) -> bytes:
    """Tokens are long and random, so that a plain hash cannot be turned back."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
