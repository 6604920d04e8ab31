"""Typed bodies at the HTTP door: refused with each field's name, described in OpenAPI, listed with their schemas."""

from __future__ import annotations

from types import ModuleType
from uuid import UUID

import httpx
import jsonschema_rs
import pytest
from fastapi import APIRouter
from pydantic import BaseModel

from pipeline import Workflow
from pipeline.declare import extension
from tests.apis import running_api
from tests.front.api.conftest import Serve
from tests.place import Place

SHOP = "tests.front.shop"
GOOD = {"order": 17, "placed_at": "2026-11-18T20:00:00Z", "lines": [{"sku": "a"}], "mainLine": {"sku": "b"}}


def refused(answer: httpx.Response) -> dict[str, str]:
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json"), answer.text
    return {error["where"]: error["what"] for error in answer.json()["errors"]}


def post(api: httpx.Client, body: object, **headers: str) -> httpx.Response:
    return api.post("/v1/jobs", json={"workflow": "shop-orders", "body": body}, headers=headers)


def test_a_body_that_does_not_fit_is_refused_with_each_field_and_nothing_is_stored(
    place: Place, shop: ModuleType, api: httpx.Client
) -> None:
    """Where in the request, and what is wrong with it, as for every other field of this API."""
    wrong = refused(post(api, {"order": "x", "lines": [{"count": 2}], "colour": "red"}))
    assert wrong.keys() == {"body.body.order", "body.body.lines.0.sku", "body.body.colour"}
    assert wrong["body.body.lines.0.sku"] == "Field required"
    assert refused(post(api, {})) == {"body.body.order": "Field required"}
    assert place.count("SELECT count(*) FROM pipeline.jobs") == 0


def test_a_body_that_fits_is_stored_as_its_type_writes_it(place: Place, shop: ModuleType, api: httpx.Client) -> None:
    """Defaults included; a strict field reads JSON as JSON says it."""
    job = UUID(post(api, GOOD).json()["id"])
    stored = place.job(job)["body"]
    assert (stored["speed"], stored["lines"]) == ("slow", [{"sku": "a", "count": 1}])
    assert stored["mainLine"] == {"sku": "b", "count": 1}


def test_a_typed_request_sent_again_with_its_key_is_the_same_job(
    place: Place, shop: ModuleType, api: httpx.Client
) -> None:
    """What is compared is the body as it was stored, with its defaults."""
    key = {"Idempotency-Key": "one"}
    first, again = post(api, {"order": 1}, **key), post(api, {"order": 1, "speed": "slow"}, **key)
    assert (first.status_code, again.status_code) == (202, 202) and first.json() == again.json()
    assert post(api, {"order": 2}, **key).status_code == 409


def test_a_process_that_has_the_type_refuses_what_another_lets_through_to_the_first_phase(
    place: Place, shop: ModuleType
) -> None:
    """``pipeline api`` loads what PIPELINE_WORKFLOWS names. Without it the job fails at once, in the same words."""
    with running_api(place, PIPELINE_WORKFLOWS=SHOP) as knows, running_api(place, PIPELINE_WORKFLOWS="") as does_not:
        problem = post(knows, {"order": "x"})
        [said] = refused(problem).values()
        assert knows.get("/v1/workflows/shop-orders").json()["body_schema"]["title"] == "Order"
        assert does_not.get("/v1/workflows/shop-orders").json()["body_schema"] is None
        answer = post(does_not, {"order": "x"})
        assert answer.status_code == 202
    job = UUID(answer.json()["id"])
    place.worker(threads=1, PIPELINE_WORKFLOWS=SHOP)
    row = place.finished(job)[0]
    assert (row["status"], row["attempts"]) == ("failed", 1)
    assert row["error_message"].startswith("Permanent: the body does not fit workflow shop-orders: order: " + said)


def test_workflows_are_listed_with_their_phases_and_types(place: Place, shop: ModuleType, api: httpx.Client) -> None:
    """The options are PostgreSQL's, which are in force; untyped workflows have no schema."""
    place.db.execute("UPDATE pipeline.phases SET pool = 9 WHERE queue = 'shop-orders.name-lines'")
    listed = {one["name"]: one for one in api.get("/v1/workflows").json()}
    assert list(listed) == sorted(listed)
    typed = listed["shop-orders"]
    assert [(phase["phase"], phase["pool"]) for phase in typed["phases"]] == [("count-lines", None), ("name-lines", 9)]
    assert typed["body_schema"]["required"] == ["order"]
    assert typed["result_schema"] == {"items": {"type": "string"}, "type": "array"}
    assert (listed["single"]["body_schema"], listed["single"]["result_schema"]) == (None, None)
    assert api.get("/v1/workflows/shop-orders").json() == {**typed, "hooks": [], "turns": None}
    assert api.get("/v1/workflows/nothing").status_code == 404


def test_openapi_tells_what_a_new_job_of_each_typed_workflow_carries(shop: ModuleType, api: httpx.Client) -> None:
    """Exactly one alternative fits a request: by its workflow."""
    described = api.get("/v1/openapi.json").json()
    validator = jsonschema_rs.Draft202012Validator(
        {"$ref": "#/components/schemas/NewJob", "components": described["components"]}
    )
    for fits, request in (
        (True, {"workflow": "shop-orders", "body": GOOD}),
        (True, {"workflow": "single", "body": {"order": "x"}}),
        (True, {"workflow": "single"}),
        (False, {"workflow": "shop-orders", "body": {"order": "x"}}),
        (False, {"workflow": "shop-orders", "body": {"order": 1, "lines": [{"count": 2}]}}),
        (False, {"workflow": "shop-orders"}),
        (False, {"workflow": "single", "colour": "red"}),
    ):
        assert validator.is_valid(request) is fits, request


class Tree(BaseModel):
    """A model that names itself: its schema is a reference at the top."""

    name: str
    branches: list[Tree] = []


class NewJob(BaseModel):
    """An application's own model, by the name of one of the engine's."""

    title: str


router = APIRouter()


@router.post("/v1/vacancies")
def open_vacancy(wish: NewJob) -> str:
    return wish.title


def test_openapi_holds_together_with_a_recursive_body_and_an_application_s_model_of_our_name(
    shop: ModuleType, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the request of a new job refers to is found, and says what fits."""
    Workflow("shop-trees", body=Tree)
    monkeypatch.setattr(extension, "_extensions", {"work": extension.Extension("work", routes=(f"{__name__}:router",))})
    described = httpx.get(f"{serve()}/v1/openapi.json").json()
    request = described["paths"]["/v1/jobs"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert request["$ref"] != "#/components/schemas/NewJob"
    validator = jsonschema_rs.Draft202012Validator({**request, "components": described["components"]})
    tree = {"name": "a", "branches": [{"name": "b"}]}
    assert validator.is_valid({"workflow": "shop-trees", "body": tree})
    assert not validator.is_valid({"workflow": "shop-trees", "body": {"name": "a", "branches": [{}]}})


def test_results_of_any_kind_are_shown(place: Place, shop: ModuleType, api: httpx.Client) -> None:
    """Numbers, lists and texts, not only objects."""
    job = UUID(post(api, {"order": 1}).json()["id"])
    place.worker(threads=1, PIPELINE_WORKFLOWS=SHOP)
    place.finished(job)
    assert api.get(f"/v1/jobs/{job}").json()["result"] == {"count-lines": 0, "name-lines": ["none of 0"]}
