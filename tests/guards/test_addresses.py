"""Which addresses may be fetched, as a table of tricks and a few laws."""

from __future__ import annotations

import contextlib
import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.declare.errors import Permanent
from pipeline.http.addresses import AddressPolicy, vet_ip, vet_url
from pipeline.http.networks import refusal

TRICKS = [
    "",
    "example.com",
    "//example.com/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://example.com:70/_GET",
    "javascript:alert(1)",
    "data:text/html,hello",
    "dict://example.com:2628/d:x",
    "ws://example.com/",
    "http://",
    "http:///path",
    "http://:80/",
    "http://user@example.com/",
    "http://user:secret@example.com/",
    "http://example.com@127.0.0.1/",
    "http://127.0.0.1#@example.com/",
    "http://example.com\\@127.0.0.1/",
    "http://example.com\t.evil.org/",
    "http://example.com\r\nHost: 127.0.0.1/",
    "http://exa mple.com/",
    "http://\x00example.com/",
    "http://localhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://anything.localhost/",
    "http://printer.local/",
    "http://postgres/",
    "http://vault.internal/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://metadata.goog/",
    "http://169.254.169.254/latest/meta-data/",
    "http://168.63.129.16/",
    "http://100.100.100.200/",
    "http://127.0.0.1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://2130706433/",
    "http://134744072/",
    "http://0x7f000001/",
    "http://0x7f.0x0.0x0.0x1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://127.0.0.1./",
    "http://127.0.0.256/",
    "http://127.000.000.001/",
    "http://1.2.3.4.5/",
    "http://0/",
    "http://0.0.0.0/",
    "http://10.1.2.3/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://192.0.0.192/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/",
    "http://ｌｏｃａｌｈｏｓｔ/",
    "http://[::1]/",
    "http://[::]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:8.8.8.8]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fd00:ec2::254]/",
    "http://[ff02::1]/",
    "http://[fec0::1]/",
    "http://[::1",
    "http://::1/",
    "http://example.com:22/",
    "http://example.com:0/",
    "http://example.com:65536/",
    "http://example.com:8o/",
    "http://example.com:5432/",
    "http://%31%32%37.0.0.1/",
    "http://-bad-.com/",
    "http://a..com/",
    "http://" + "a" * 64 + ".com/",
    "http://example.com/" + "a" * 3000,
]
FINE = [
    ("http://example.com", "http://example.com/"),
    ("HTTP://EXAMPLE.com:80/A?b=c#d", "http://example.com/A?b=c"),
    ("https://example.com:443/", "https://example.com/"),
    ("https://example.com:8443/x", "https://example.com:8443/x"),
    ("https://bücher.example.com/ü", "https://xn--bcher-kva.example.com/ü"),
    ("https://münchen.de/", "https://xn--mnchen-3ya.de/"),
    ("http://8.8.8.8/", "http://8.8.8.8/"),
    ("http://[2606:4700:4700::1111]/", "http://[2606:4700:4700::1111]/"),
    ("http://under_score.example.com/", "http://under_score.example.com/"),
    ("http://example.com./", "http://example.com/"),
    ("http://1password.com/", "http://1password.com/"),
]


@pytest.mark.parametrize("url", TRICKS)
def test_a_trick_is_refused_with_a_reason(url: str) -> None:
    """Every spelling in the list is refused for good, before anything is looked up."""
    with pytest.raises(Permanent, match=r"refused: "):
        vet_url(url, AddressPolicy())


@pytest.mark.parametrize(("url", "normal"), FINE)
def test_a_public_address_gets_its_normal_spelling(url: str, normal: str) -> None:
    """Ordinary addresses pass and come back in one spelling."""
    assert vet_url(url, AddressPolicy()).url == normal


def test_a_refusal_never_shows_the_password() -> None:
    """A reason ends up in logs and on screens."""
    with pytest.raises(Permanent) as refused:
        vet_url("http://user:secret@example.com/", AddressPolicy())
    assert "secret" not in str(refused.value)


def test_an_operator_vouches_for_one_host_and_port_only() -> None:
    """The neighbour on the next port stays shut, and so does the same port elsewhere."""
    policy = AddressPolicy(allowed_hosts=frozenset({"127.0.0.1:8099", "[::1]:8099"}))
    assert vet_url("http://127.0.0.1:8099/x", policy).port == 8099
    assert vet_url("http://[::1]:8099/x", policy).host == "::1"
    for url in ("http://127.0.0.1:8098/", "http://127.0.0.2:8099/", "http://localhost:8099/", "http://127.0.0.1/"):
        with pytest.raises(Permanent):
            vet_url(url, policy)


def test_allowing_private_addresses_still_refuses_metadata_and_multicast() -> None:
    """The developer's switch opens private and loopback, nothing else."""
    policy = AddressPolicy(allow_private=True)
    assert vet_url("http://10.0.0.1/", policy).host == "10.0.0.1"
    assert vet_url("http://localhost/", policy).host == "localhost"
    for address in ("169.254.169.254", "224.0.0.1", "0.0.0.0", "::ffff:10.0.0.1", "fe80::1"):
        with pytest.raises(Permanent):
            vet_ip(address, policy)


@given(st.text(max_size=200))
def test_any_text_is_either_vetted_or_refused(url: str) -> None:
    """No input makes the guard fail in another way than by refusing."""
    for candidate in (url, f"http://{url}", f"http://[{url}]/", f"https://example.com:{url}/"):
        with contextlib.suppress(Permanent):
            assert vet_url(candidate, AddressPolicy()).scheme in {"http", "https"}


@given(st.ip_addresses())
def test_what_python_calls_private_is_never_let_through(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    """The table is at least as strict as the standard library."""
    if ip.is_private or ip.is_loopback or ip.is_link_local or ip.is_multicast or ip.is_reserved or ip.is_unspecified:
        assert refusal(ip) is not None


@given(st.integers(min_value=0, max_value=2**32 - 1))
def test_an_ipv4_address_hidden_in_ipv6_is_never_let_through(number: int) -> None:
    """Mapped, compatible, NAT64 and 6to4 forms are refused whatever they carry."""
    for base in (0xFFFF << 32, 0, 0x64FF9B << 96, 0x2002 << 112):
        hidden = base | (number << 80 if base >> 112 == 0x2002 else number)
        assert refusal(ipaddress.IPv6Address(hidden)) is not None
