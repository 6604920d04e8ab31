"""Records on their way into a project: JSON and CSV, every size bounded, errors with their line."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from actors.match.entries import add_entries, load_csv
from actors.match.projects import NoSuchProject, create_project
from actors.match.upload import LONGEST_ROW, Entry, read_csv
from pipeline.declare.errors import BadInput


def read(content: str, size: int = 7) -> list[tuple[int, Entry]]:
    raw = content.encode()
    return list(read_csv(raw[at : at + size] for at in range(0, len(raw), size)))


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_file_is_read_the_same_in_any_pieces(size: int) -> None:
    """Quotes, line ends within quotes, blank lines, a byte order mark, letters cut in half between pieces."""
    content = '\ufeffID;Name;Born\r\n1;"Müller; Jörg";1850\r\n\r\n2;"two\nlines";\n;李文豪;1901'
    assert read(content, size) == [
        (2, Entry("Müller; Jörg", "1", {"born": "1850"})),
        (4, Entry("two\nlines", "2", {})),
        (6, Entry("李文豪", None, {"born": "1901"})),
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "the file is empty"),
        ("id,born\n1,1850", "names no column name"),
        ("name,name\na,b", "twice"),
        ("name\nok\na,b\n", "line 3 has 2 fields"),
        ("id,name\n1,a\n2,\n", "line 3 has no name"),
        ("name\n" + "x" * 501, "line 2: its name has 501 characters"),
        ("name\na\x00b", "line 2 has a NUL"),
        ('name\n"' + "x" * LONGEST_ROW + "\n\n", "is a quote missing"),
        ('name\n"' + "x\n" * LONGEST_ROW, "is a quote missing"),
        ("name\n" + "x" * (LONGEST_ROW + 10), "longer than"),
        ('name\n"a"b\n', "line 2 is no CSV"),
        (",".join(f"c{n}" for n in range(101)), "101 columns"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_its_line(content: str, says: str) -> None:
    """The first such line ends the upload."""
    with pytest.raises(BadInput, match=says):
        read(content, 1000)


def test_another_encoding_is_named() -> None:
    """Not guessed: a wrong guess would be a wrong name."""
    with pytest.raises(BadInput, match="near line 2: the file is not UTF-8"):
        list(read_csv([b"name\n", "Müller".encode("latin-1"), b"\n"]))


@given(st.binary(max_size=200))
def test_no_bytes_can_do_worse_than_be_refused(content: bytes) -> None:
    """Whatever comes in."""
    try:
        list(read_csv([b"name,x\n", content]))
    except BadInput as error:
        assert "line" in str(error)


def test_a_long_file_is_never_in_memory_as_a_whole(connection: Connection) -> None:
    """Twenty-five thousand rows, some five megabytes, with a peak far below that; every row has its task."""
    project = create_project(connection, "long")

    def pieces() -> Iterator[bytes]:
        yield b"id,name,description\n"
        for start in range(0, 25_000, 500):
            yield "".join(f"{n},Person {n},{'painter ' * 20}\n" for n in range(start, start + 500)).encode()

    tracemalloc.start()
    assert load_csv(connection, project, pieces()) == 25_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_500_000, peak
    assert (
        connection.execute(text("select count(*) from tasks where project_id = :p"), {"p": project}).scalar() == 25_000
    )


def test_all_or_nothing_and_keys_only_once(connection: Connection) -> None:
    """The message names the key and the rows it is among."""
    project = create_project(connection, "keys")
    with connection.begin_nested() as part:
        with pytest.raises(BadInput, match=r"lines 2 to 4: a key is there already: \(\d+, a\)"):
            load_csv(connection, project, [b"id,name\na,x\nb,y\na,z\n"])
        part.rollback()
    assert add_entries(connection, project, [{"name": " x ", "id": 5, "born": 1850}, {"name": "y"}]) == 2
    row = connection.execute(text("select name, external_id, data from dataset_entries order by id limit 1")).one()
    assert row == ("x", "5", {"born": 1850})


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({}, "entry 1 has no name"),
        ({"name": 5}, "entry 1 has no name"),
        ({"name": "  "}, "entry 1 has no name"),
        ({"name": "x", "data": "y" * 70_000}, "larger than"),
        ({"name": "x", "data": "\x00"}, "NUL"),
        ({"name": "x\x00"}, "NUL"),
        ({"name": "x", "id": "k" * 201}, "201 characters"),
        ({"name": "x", "data": object()}, "not JSON"),
    ],
)
def test_a_bad_json_entry_is_refused_with_its_place(
    connection: Connection, entry: dict[str, object], says: str
) -> None:
    """Before PostgreSQL sees it."""
    project = create_project(connection, "bad")
    with pytest.raises(BadInput, match=says):
        add_entries(connection, project, [entry])


def test_a_project_that_is_not_there_takes_nothing(connection: Connection) -> None:
    """Said before the file is read."""
    with pytest.raises(NoSuchProject, match="there is no project 999"):
        load_csv(connection, 999, iter([]))
