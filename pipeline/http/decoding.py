"""Undo a Content-Encoding piece by piece, never producing more than asked for: a bomb cannot go off."""

from __future__ import annotations

import zlib
from typing import Protocol

import brotli

from pipeline.declare.errors import Transient


class Decoder(Protocol):
    """Turns the bytes of the wire into the bytes of the page."""

    def decode(self, data: bytes, most: int) -> bytes:
        """Up to ``most`` bytes of output; the caller stops once that is reached."""

    def finish(self) -> None:
        """Raise Transient if the stream ended too early."""


class _Plain:
    def decode(self, data: bytes, most: int) -> bytes:
        return data[:most]

    def finish(self) -> None:
        return


class _Zlib:
    """gzip and deflate; for deflate both the wrapped and the raw form are in use."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._inner = zlib.decompressobj(47 if name == "gzip" else zlib.MAX_WBITS)
        self._raw_allowed = name == "deflate"
        self._head = b""

    def decode(self, data: bytes, most: int) -> bytes:
        before, self._head = self._head, self._head or data[:1]
        try:
            return self._inner.decompress(data, max(most, 1))
        except zlib.error as error:
            if not self._raw_allowed:
                raise Transient(f"the {self._name} body could not be decompressed ({error})") from None
            # the header is the first two bytes: at most one of them came before this piece
            self._raw_allowed, self._inner = False, zlib.decompressobj(-zlib.MAX_WBITS)
            return self.decode(before + data, most)

    def finish(self) -> None:
        if self._head and not self._inner.eof:
            raise Transient(f"the {self._name} body ended in the middle")


class _Brotli:
    def __init__(self) -> None:
        self._inner = brotli.Decompressor()
        self._begun = False

    def decode(self, data: bytes, most: int) -> bytes:
        self._begun = self._begun or bool(data)
        try:
            return bytes(self._inner.process(data, output_buffer_limit=max(most, 1)))
        except brotli.error as error:
            raise Transient(f"the br body could not be decompressed ({error})") from None

    def finish(self) -> None:
        if self._begun and not self._inner.is_finished():
            raise Transient("the br body ended in the middle")


ACCEPTED = "gzip, deflate, br"


def decoder_for(content_encoding: str) -> Decoder:
    """The decoder for a Content-Encoding header. What is unknown is passed on as it came."""
    name = content_encoding.strip().lower().removeprefix("x-")
    if name in {"gzip", "deflate"}:
        return _Zlib(name)
    return _Brotli() if name == "br" else _Plain()
