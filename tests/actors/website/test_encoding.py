"""Bytes become text as in a browser: BOM, header, meta, then a look."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.website.encoding import decode
from actors.website.page import parse_page

GERMAN = "Größe der Tür: fünf Äpfel"
RUSSIAN = "Привет, мир. Это обычный русский текст, написанный для проверки распознавания кодировки страницы. " * 4
JAPANESE = "これは日本語の文章です。文字コードの判定を確かめるために書かれています。" * 4


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (codecs.BOM_UTF8 + GERMAN.encode(), "text/html; charset=shift_jis", GERMAN),
        (codecs.BOM_UTF16_LE + GERMAN.encode("utf-16-le"), "", GERMAN),
        (codecs.BOM_UTF16_BE + GERMAN.encode("utf-16-be"), "text/html; charset=utf-8", GERMAN),
        (GERMAN.encode("latin-1"), "text/html; charset=ISO-8859-1", GERMAN),
        ("„“€".encode("cp1252"), "text/html; charset=latin1", "„“€"),
        (GERMAN.encode("latin-1"), 'text/html; charset="windows-1252"', GERMAN),
        (JAPANESE.encode("shift_jis"), "text/html;charset=Shift_JIS", JAPANESE),
        (GERMAN.encode(), "", GERMAN),
        (GERMAN.encode(), "text/html; charset=zip", GERMAN),
        (GERMAN.encode(), "text/html; charset=utf-7", GERMAN),
        (RUSSIAN.encode("cp1251"), "", RUSSIAN),
        (JAPANESE.encode("shift_jis"), "", JAPANESE),
        (b"", "", ""),
    ],
)
def test_the_right_encoding_is_found(body: bytes, content_type: str, text: str) -> None:
    """One case for each source of the answer."""
    assert decode(body, content_type).text == text


@pytest.mark.parametrize(
    "meta",
    [
        '<meta charset="gb2312">',
        "<META CHARSET=gbk>",
        '<meta http-equiv=Content-Type content="text/html; charset=gb18030">',
    ],
)
def test_the_page_can_name_its_encoding_itself(meta: str) -> None:
    """In either form of meta, and a narrower name means the wider encoding."""
    body = f"<html><head>{meta}<title>茶叶</title>".encode("gb18030")
    assert "茶叶" in decode(body).text


def test_a_meta_that_claims_utf_16_is_not_believed() -> None:
    """It could not have been read if it were true."""
    assert decode('<meta charset="utf-16">ü'.encode()).text.endswith("ü")


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        ("cp1251", "Заголовок"),
        ("koi8_r", "Заголовок страницы"),
        ("cp866", "Это страница о погоде в Москве."),
        ("cp1253", "Τίτλος σελίδας"),
        ("cp1255", "כותרת העמוד"),
        ("cp1256", "عنوان الصفحة"),
        ("cp1250", "Příliš žluťoučký kůň"),
        ("iso8859_2", "Źródło żółci, gęś"),
        ("cp1254", "Çok güzel ağaçlar, ışık"),
        ("cp1252", "Résumé à Genève – “q”"),
        ("euc_jp", "これは日本語のページです"),
        ("shift_jis", "日本語の題です"),
        ("gb18030", "中文标题在这里"),
        ("big5", "繁體中文標題"),
        ("euc_kr", "한국어 제목입니다"),
    ],
)
def test_what_nobody_labelled_is_told_by_its_letters(codec: str, text: str) -> None:
    """A few words are enough; the page says that it was a guess."""
    html = f"<!doctype html><title>{text}</title><p>{text}</p><p>Words that any encoding has.</p>"
    page = parse_page(html.encode(codec), "http://example.com/")
    assert (page.title, page.encoding_doubtful) == (text, True)
    labelled = f"text/html; charset={codec.replace('_', '-')}"
    assert not parse_page(html.encode(codec), "http://example.com/", labelled).encoding_doubtful
    assert not parse_page(html.encode(), "http://example.com/").encoding_doubtful


def test_a_spoiled_letter_makes_no_other_encoding() -> None:
    """It is shown as what it is, and is a doubt."""
    body = (RUSSIAN.encode() + b"\xff" + RUSSIAN.encode()).replace(b".", b"<br>")
    page = parse_page(body, "http://example.com/")
    assert (page.encoding, page.encoding_doubtful) == ("utf-8", True)
    assert "Привет" in page.text


@given(st.binary(max_size=3000), st.text(max_size=60))
def test_any_bytes_become_text(body: bytes, content_type: str) -> None:
    """Never raises, whatever the header says."""
    assert isinstance(decode(body, content_type).text, str)
