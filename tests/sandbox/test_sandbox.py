"""The sandbox speaks real HTTP, repeats itself exactly, and fails only on request."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

import sandbox as package
from sandbox import Sandbox
from sandbox.sites import TONGUES, site


def chat(sandbox: Sandbox, model: str = "sandbox", **more: Any) -> httpx.Response:
    question = {"model": model, "messages": [{"role": "user", "content": "Title: Tea\nText:\nWe sell tea. Order now."}]}
    return httpx.post(f"{sandbox.url}/v1/chat/completions", json=question | more)


def test_it_imports_nothing_of_the_engine() -> None:
    """What the two sides agree on has gone over the wire."""
    for path in Path(package.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("pipeline", "actors", "db")):
                assert (node.module or "").startswith("sandbox"), path.name


@pytest.mark.parametrize("number", range(len(TONGUES)))
def test_every_site_is_readable_in_its_encoding(sandbox: Sandbox, number: int) -> None:
    """The bytes decode strictly to a page with the firm's name."""
    body = httpx.get(f"{sandbox.url}/sites/{number}/").content
    assert site(number).firm in body.decode(TONGUES[number].encoding)


def test_the_same_question_gets_the_same_answer(sandbox: Sandbox) -> None:
    """Pages and chat are deterministic."""
    assert httpx.get(f"{sandbox.url}/sites/41/about").content == httpx.get(f"{sandbox.url}/sites/41/about").content
    assert chat(sandbox).json() == chat(sandbox).json()


def test_the_chat_answers_in_json_on_request(sandbox: Sandbox) -> None:
    """JSON mode gives an object, otherwise prose; usage adds up."""
    answer = chat(sandbox, response_format={"type": "json_object"}).json()
    assert answer["choices"][0]["message"]["content"].startswith("{")
    usage = answer["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0
    assert chat(sandbox).json()["choices"][0]["message"]["content"] == "We sell tea. Order now."


def test_the_chat_refuses_what_it_cannot_read(sandbox: Sandbox) -> None:
    """A bad question is a 400, a wrong key a 401, in the shape clients know."""
    assert httpx.post(f"{sandbox.url}/v1/chat/completions", json={"model": "x"}).status_code == 400
    wrong = httpx.post(
        f"{sandbox.url}/v1/chat/completions",
        json={"model": "sandbox", "messages": []},
        headers={"Authorization": "Bearer wrong"},
    )
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (401, "invalid_api_key")


def test_a_fault_in_the_address_strikes_as_often_as_asked(sandbox: Sandbox) -> None:
    """Twice 503, then the page."""
    url = f"{sandbox.url}/sites/1/?fault_status=503&fault_retry_after=9&fault_times=2"
    answers = [httpx.get(url) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [503, 503, 200]
    assert answers[0].headers["retry-after"] == "9"


def test_a_fault_laid_out_beforehand_strikes_matching_paths_only(sandbox: Sandbox) -> None:
    """Every second request under the prefix, and no other."""
    sandbox.add_fault(match="/sites/2", status=500, every=2)
    statuses = [httpx.get(f"{sandbox.url}/sites/{n}/").status_code for n in (2, 2, 3, 2, 2)]
    assert statuses == [200, 500, 200, 200, 500]
    assert httpx.get(f"{sandbox.url}/_faults").json()[0]["struck"] == 2


def test_an_unknown_fault_is_refused(sandbox: Sandbox) -> None:
    """A typing error must not look like a healthy run."""
    assert httpx.post(f"{sandbox.url}/_faults", json={"statsu": 500}).status_code == 400
    assert httpx.get(f"{sandbox.url}/sites/1/?fault_statsu=1").status_code == 400


def test_connections_can_be_cut_and_bytes_spoiled(sandbox: Sandbox) -> None:
    """The two faults that are no HTTP status."""
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(f"{sandbox.url}/sites/1/?fault_cut=1")
    with pytest.raises(UnicodeDecodeError):
        httpx.get(f"{sandbox.url}/sites/1/?fault_garbage=true").content.decode()


def test_it_counts_what_it_was_asked(sandbox: Sandbox) -> None:
    """Its own addresses are not counted; a reset starts anew."""
    httpx.get(f"{sandbox.url}/sites/1/")
    httpx.get(f"{sandbox.url}/status/404")
    stats = sandbox.stats()
    assert stats["requests"] == 2
    assert stats["statuses"] == {"200": 1, "404": 1}
    sandbox.reset()
    assert sandbox.stats()["requests"] == 0


def test_it_runs_as_a_program() -> None:
    """``python -m sandbox`` serves on the port it was given."""
    command = [sys.executable, "-m", "sandbox", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if "running on" in line)
            url = next(word for word in line.split() if word.startswith("http://"))
            assert httpx.get(f"{url}/_health").json() == {"ok": True}
        finally:
            process.terminate()
