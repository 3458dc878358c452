from __future__ import annotations

import json

import pytest
from noctaya_gateway.errors import ColdStart, ModelNotFound
from noctaya_gateway.models import Models, State, answer_cold

MODELS = Models(["qwen", "org/Model-7B", "qwen"], created=1_700_000_000)
REFUSAL = ColdStart(retry_seconds=10)


def listed(model_id: str, state: str = "cold") -> dict[str, object]:
    return {
        "id": model_id,
        "object": "model",
        "created": 1_700_000_000,
        "owned_by": "noctaya",
        "noctaya": {"state": state},
    }


@pytest.mark.parametrize("target", [b"/v1/models", b"/v1/models/", b"/v1/models?limit=1"])
def test_g3_the_models_are_listed_with_their_state(target: bytes) -> None:
    reply = MODELS.answer(target, state=State.COLD)
    assert reply is not None
    assert reply.status == 200
    assert json.loads(reply.body) == {"object": "list", "data": [listed("qwen"), listed("org/Model-7B")]}
    assert dict(reply.headers)[b"content-length"] == b"%d" % len(reply.body)


@pytest.mark.parametrize(
    ("target", "model_id"),
    [
        (b"/v1/models/qwen", "qwen"),
        (b"/v1/models/org/Model-7B", "org/Model-7B"),
        (b"/v1/models/org%2FModel-7B", "org/Model-7B"),
        (b"/v1/models/org%2fModel%2d7B?x=1", "org/Model-7B"),
    ],
)
def test_g3_a_model_is_found_by_id_with_slashes_encoded_or_not(target: bytes, model_id: str) -> None:
    reply = MODELS.answer(target, state=State.ACTIVATING)
    assert reply is not None
    assert json.loads(reply.body) == listed(model_id, "activating")


@pytest.mark.parametrize("target", [b"/v1/models/other", b"/v1/models/qwen/x", b"/v1/models/%ff"])
def test_another_id_is_not_found(target: bytes) -> None:
    with pytest.raises(ModelNotFound) as refusal:
        MODELS.answer(target, state=State.COLD)
    assert (refusal.value.status, refusal.value.code) == (404, "model_not_found")


@pytest.mark.parametrize(
    ("method", "target"),
    [
        (b"GET", b"/"),
        (b"GET", b"/favicon.ico"),
        (b"HEAD", b"/health"),
        (b"OPTIONS", b"/v1/models"),
        (b"GET", b"/v1/modelsx"),
    ],
)
def test_g3_everything_else_safe_is_refused_as_cold(method: bytes, target: bytes) -> None:
    with pytest.raises(ColdStart):
        answer_cold(MODELS, method, target, state=State.COLD, refusal=REFUSAL)


def test_head_is_answered_like_get() -> None:
    head = answer_cold(MODELS, b"HEAD", b"/v1/models", state=State.COLD, refusal=REFUSAL)
    get = answer_cold(MODELS, b"GET", b"/v1/models", state=State.COLD, refusal=REFUSAL)
    assert head == get
