"""Which addresses a fetch may reach. Pure: no lookups here, the names and numbers are passed in.

Two checks together close the door: ``vet_url`` refuses what is wrong in the writing of an address,
``vet_ip`` refuses where a name led to. The second runs on the very address that is then connected to
(see ``pinned``), so neither a redirect nor a DNS answer that changes can get around it.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit, urlunsplit

import idna

from pipeline.declare.errors import Permanent
from pipeline.http.networks import refusal

DEFAULT_PORTS = {"http": 80, "https": 443}
LONGEST_URL = 2048
# Private and loopback are what a developer may open; the rest stays shut in every setting.
WAIVABLE = frozenset({"private", "loopback"})

_PRIVATE_ZONES = (
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "home.arpa",
    "test",
    "example",
    "invalid",
    "onion",
)
_METADATA_NAMES = frozenset({"metadata.goog", "metadata.google.com", "instance-data.ec2.amazonaws.com"})
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)")
_DOTTED_QUAD = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.(?:0|[1-9][0-9]{0,2})){3}")
_UNSAFE = re.compile(r"[\x00-\x20\x7f-\xa0\\<>\"`{}|^\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True)
class AddressPolicy:
    """What may be reached. ``allowed_hosts`` are ``host:port`` pairs that the operator vouches for."""

    allow_private: bool = False
    allowed_hosts: frozenset[str] = frozenset()
    ports: frozenset[int] = frozenset({80, 443, 8080, 8443})

    def vouches_for(self, host: str, port: int) -> bool:
        """Whether the operator named exactly this host and port; its address is then not judged."""
        return host_port(host, port) in self.allowed_hosts


@dataclass(frozen=True)
class Target:
    """A vetted address in its one normal spelling."""

    url: str
    scheme: str
    host: str
    port: int


def host_port(host: str, port: int) -> str:
    """The spelling used in ``allowed_hosts``; IPv6 addresses stand in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def authority(url: str) -> str:
    """The host and port of an address in the same spelling; the port is its scheme's where it names none."""
    parts = urlsplit(url)
    return host_port(parts.hostname or "", parts.port or DEFAULT_PORTS.get(parts.scheme, 0))


def vet_url(url: str, policy: AddressPolicy) -> Target:
    """Return the address in normal form, or raise Permanent with the reason it is refused."""
    parts = _split(url)
    scheme = parts.scheme.lower()
    if scheme not in DEFAULT_PORTS:
        raise _refused(url, f"only http and https are fetched, not {scheme or 'an address without a scheme'}")
    if "@" in parts.netloc:
        raise _refused(url, "it carries a user name or password")
    host, port = _host(url, parts), _port(url, parts)
    if not policy.vouches_for(host, port):
        _vet_host(url, host, policy)
        if port not in policy.ports:
            raise _refused(url, f"port {port} is not among {', '.join(map(str, sorted(policy.ports)))}")
    return Target(_rebuilt(parts, scheme, host, port), scheme, host, port)


def vet_ip(address: str, policy: AddressPolicy) -> str:
    """Return the address, or raise Permanent if no public machine can be behind it."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    reason = refusal(ip)
    if reason is None or (policy.allow_private and reason in WAIVABLE):
        return str(ip)
    raise Permanent(f"address {address} is refused: it is {reason}, not public")


def _split(url: str) -> SplitResult:
    if len(url) > LONGEST_URL:
        raise Permanent(f"address {url[:60]}… is refused: it is longer than {LONGEST_URL} characters")
    if _UNSAFE.search(url):
        raise _refused(url, "it contains spaces, backslashes or control characters")
    try:
        return urlsplit(url)
    except ValueError as error:
        raise _refused(url, str(error)) from None


def _host(url: str, parts: SplitResult) -> str:
    host = (parts.hostname or "").removesuffix(".")
    if not host:
        raise _refused(url, "it names no host")
    if "[" in parts.netloc:
        return _ipv6(url, host)
    if not host.isascii():
        host = _ascii_host(url, host)
    return host


def _ipv6(url: str, host: str) -> str:
    try:
        return str(ipaddress.IPv6Address(host))
    except ValueError:
        raise _refused(url, "the host in brackets is not a plain IPv6 address") from None


def _ascii_host(url: str, host: str) -> str:
    try:
        return idna.encode(host, uts46=True).decode("ascii").lower().removesuffix(".")
    except (idna.IDNAError, UnicodeError, ValueError):
        raise _refused(url, "its host name is not a valid international name") from None


def _port(url: str, parts: SplitResult) -> int:
    try:
        port = parts.port
    except ValueError:
        raise _refused(url, "its port is not a number from 1 to 65535") from None
    return DEFAULT_PORTS[parts.scheme.lower()] if port is None else port


def _vet_host(url: str, host: str, policy: AddressPolicy) -> None:
    if ":" in host:
        vet_ip(host, policy)
    elif _NUMBER.fullmatch(host.rpartition(".")[2]):
        vet_ip(_plain_ipv4(url, host), policy)
    else:
        _vet_name(url, host, policy)


def _plain_ipv4(url: str, host: str) -> str:
    if not _DOTTED_QUAD.fullmatch(host):
        raise _refused(url, "a numeric host must be written as four plain decimal numbers")
    try:
        return str(ipaddress.IPv4Address(host))
    except ValueError:
        raise _refused(url, "its numeric host is not an IPv4 address") from None


def _vet_name(url: str, host: str, policy: AddressPolicy) -> None:
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise _refused(url, "its host is not a valid name")
    if host in _METADATA_NAMES:
        raise _refused(url, "it is a cloud metadata service")
    if policy.allow_private:
        return
    if "." not in host or any(host == zone or host.endswith("." + zone) for zone in _PRIVATE_ZONES):
        raise _refused(url, f"{host} is a name of a private network, not of a public site")


def _rebuilt(parts: SplitResult, scheme: str, host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    netloc = shown if port == DEFAULT_PORTS[scheme] else f"{shown}:{port}"
    return urlunsplit((scheme, netloc, parts.path or "/", parts.query, ""))


def _refused(url: str, reason: str) -> Permanent:
    return Permanent(f"address {_without_password(url)} is refused: {reason}")


def _without_password(url: str) -> str:
    shown = re.sub(r"//[^/?#]*@", "//***@", url)
    return "".join(c if c.isprintable() else "?" for c in shown[:200])
