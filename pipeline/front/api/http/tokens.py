"""The tokens of PIPELINE_API_TOKENS, kept as hashes, and sessions for them. No secret is ever printed."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from time import time
from typing import Literal, NamedTuple, get_args

from pydantic import SecretStr

from pipeline.declare.errors import BadInput

Role = Literal["viewer", "operator"]
COOKIE = "pipeline_session"
SHORTEST = 16
SESSION_SECONDS = 12 * 3600
# Who has the token, for the record of who did what.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@-]{0,59}")
HASHED = re.compile(r"sha256:([0-9a-f]{64})")


class Holder(NamedTuple):
    """Who has a token: what they may do, and what they are called."""

    role: Role
    name: str


class Tokens:
    """Compares in constant time. A session ends when its token is taken away, and when this process ends."""

    def __init__(self, holders: dict[bytes, Holder]) -> None:
        self._holders = holders
        # Made anew by every process: who can read the hashes cannot sign a session with them.
        self._key = secrets.token_bytes(32)

    def __repr__(self) -> str:
        return f"<{len(self._holders)} tokens>"

    def holder_of(self, token: str) -> Holder | None:
        """Who has the token; every known token is compared, so that the time taken tells nothing."""
        found: Holder | None = None
        for known, holder in self._holders.items():
            if hmac.compare_digest(known, _hash(token)):
                found = holder
        return found

    def new_session(self, token: str) -> str:
        """A cookie's value: when it ends, a number used once, and the signature of both."""
        until = f"{int(time()) + SESSION_SECONDS}.{secrets.token_urlsafe(12)}"
        return f"{until}.{self._signature(_hash(token), until)}"

    def holder_of_session(self, session: str) -> Holder | None:
        """Who began a session that one of our tokens signed and that has not ended."""
        until, _, signature = session.rpartition(".")
        ends = until.partition(".")[0]
        found: Holder | None = None
        for known, holder in self._holders.items():
            if hmac.compare_digest(self._signature(known, until).encode(), signature.encode()):
                found = holder
        # The signature was checked first: only an end that we wrote ourselves is read.
        return found if found and ends.isascii() and ends.isdigit() and int(ends) > time() else None

    def _signature(self, known: bytes, message: str) -> str:
        return hmac.digest(self._key + known, f"pipeline session {message}".encode("utf-8", "replace"), "sha256").hex()


def parse_tokens(setting: SecretStr | None) -> Tokens | None:
    """Read ``role:token``, ``role:sha256:HASH`` or ``name=role:…``, comma-separated.

    What is wrong is said without saying a token.
    """
    if setting is None or not setting.get_secret_value().strip():
        return None
    holders = dict(_entry(place, part) for place, part in enumerate(setting.get_secret_value().split(","), 1))
    return Tokens(holders)


def _entry(place: int, part: str) -> tuple[bytes, Holder]:
    who, _, token = part.strip().partition(":")
    name, named, role = who.rpartition("=")
    known = get_args(Role)
    if (
        role not in known
        or len(token) < SHORTEST
        or not (token.isascii() and token.isprintable())
        or (named and not NAME.fullmatch(name))
    ):
        raise BadInput(
            f"PIPELINE_API_TOKENS: entry {place} must look like viewer:TOKEN, operator:TOKEN, "
            f"operator:sha256:HASH or NAME=operator:TOKEN, with a token of at least {SHORTEST} plain characters; "
            "make one with: openssl rand -hex 24"
        )
    hashed = HASHED.fullmatch(token)
    holder = Holder("operator" if role == "operator" else "viewer", name or role)
    return bytes.fromhex(hashed[1]) if hashed else _hash(token), holder


def _hash(token: str) -> bytes:
    """Tokens are long and random, so that a plain hash cannot be turned back."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
