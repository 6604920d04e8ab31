"""Decompression gives back what was put in, never more than asked for, and notices spoiled streams."""

from __future__ import annotations

import gzip
import zlib

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.declare.errors import Transient
from pipeline.http.decoding import decoder_for


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKED = [
    ("gzip", gzip.compress),
    ("x-gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("br", brotli.compress),
    ("identity", bytes),
    ("unheard-of", bytes),
]


@pytest.mark.parametrize(("name", "pack"), PACKED)
@given(data=st.binary(max_size=2000), size=st.integers(1, 50))
def test_pieces_add_up_to_the_original(name: str, pack: object, data: bytes, size: int) -> None:
    """However the wire cuts the stream."""
    packed, decoder = pack(data), decoder_for(name)  # type: ignore[operator]  # a table of functions
    pieces = [decoder.decode(packed[start : start + size], 10_000) for start in range(0, len(packed), size)]
    decoder.finish()
    assert b"".join(pieces) == data


@pytest.mark.parametrize("name", ["gzip", "deflate", "br"])
@given(data=st.binary(min_size=1, max_size=500))
def test_noise_is_transient_or_text(name: str, data: bytes) -> None:
    """Spoiled bytes raise Transient and nothing else."""
    decoder = decoder_for(name)
    try:
        decoder.decode(data, 1000)
        decoder.finish()
    except Transient:
        pass


@pytest.mark.parametrize(("name", "pack"), [("gzip", gzip.compress), ("br", brotli.compress)])
def test_a_stream_that_ends_too_early_is_noticed(name: str, pack: object) -> None:
    """A cut body is not taken for a short one."""
    decoder = decoder_for(name)
    decoder.decode(pack(b"page " * 1000)[:-6], 10_000)  # type: ignore[operator]  # a table of functions
    with pytest.raises(Transient, match="ended in the middle"):
        decoder.finish()
