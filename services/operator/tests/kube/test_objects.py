"""Reading objects, kinds and errors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_operator.kube import errors, objects, resources
from noctaya_operator.kube.cache import Cache
from noctaya_operator.kube.lines import CutLine, whole_lines
from noctaya_operator.kube.objects import Key

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
FIELDS = ["name", "namespace", "uid", "labels", "annotations", "ownerReferences", "generation"]
ODD_OBJECTS = st.fixed_dictionaries(
    {}, optional={"metadata": JSON | st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON))}
)


@given(ODD_OBJECTS)
def test_o1_readers_never_raise_over_an_odd_object(obj: dict[str, Any]) -> None:
    objects.uid_of(obj)
    objects.generation_of(obj)
    dict(objects.labels_of(obj))
    dict(objects.annotations_of(obj))
    objects.deleting(obj)
    objects.controller_of(obj)
    objects.controlled_by(obj, obj)
    try:
        key = objects.key_of(obj)
    except objects.MalformedObject:
        return
    assert key.name == obj["metadata"]["name"]


def owner(uid: str = "u1") -> dict[str, Any]:
    return {
        "apiVersion": "example.io/v1",
        "kind": "Owner",
        "metadata": {"name": "o", "namespace": "ns", "uid": uid},
    }


def test_an_owner_is_recognised_by_its_uid_not_its_name() -> None:
    reference = objects.owner_reference(owner())
    assert reference == {
        "apiVersion": "example.io/v1",
        "kind": "Owner",
        "name": "o",
        "uid": "u1",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    owned = {"metadata": {"name": "x", "ownerReferences": [{"uid": "other"}, reference]}}
    assert objects.controlled_by(owned, owner())
    assert not objects.controlled_by(owned, owner("u2"))
    assert objects.controller_of({"metadata": {"ownerReferences": [{"uid": "u1"}]}}) is None


def test_an_object_never_read_from_a_server_owns_nothing() -> None:
    with pytest.raises(objects.MalformedObject):
        objects.owner_reference(owner(uid=""))
    assert not objects.controlled_by({"metadata": {}}, owner(uid=""))


def test_paths_of_core_grouped_and_cluster_scoped_kinds() -> None:
    assert resources.PODS.path("ns", "a", "status") == "/api/v1/namespaces/ns/pods/a/status"
    assert resources.DEPLOYMENTS.path() == "/apis/apps/v1/deployments"
    assert resources.STORAGE_CLASSES.path("", "fast") == "/apis/storage.k8s.io/v1/storageclasses/fast"
    assert resources.PODS.path("ns", "../x") == "/api/v1/namespaces/ns/pods/..%2Fx"


def test_an_object_is_recognised_by_version_and_kind() -> None:
    assert resources.resource_of({"apiVersion": "batch/v1", "kind": "Job"}) == resources.JOBS
    with pytest.raises(resources.UnknownKind, match="batch/v2"):
        resources.resource_of({"apiVersion": "batch/v2", "kind": "Job"})


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (404, b"404 page not found\n", errors.KindAbsent),
        (404, b'{"kind":"Status","reason":"NotFound","details":{"name":"x"}}', errors.NotFound),
        (409, b'{"kind":"Status","reason":"AlreadyExists"}', errors.AlreadyExists),
        (409, b'{"kind":"Status","reason":"Conflict"}', errors.Conflict),
        (410, b'{"kind":"Status","reason":"Expired"}', errors.Gone),
        (422, b'{"kind":"Status","reason":"Invalid"}', errors.Invalid),
        (403, b"<html>proxy</html>", errors.Forbidden),
        (429, b"", errors.TooManyRequests),
        (502, b"\xff\xfe", errors.ServerUnavailable),
        (418, b"[]", errors.ApiError),
        (
            500,
            b'{"kind":"Status","message":"failed to create typed patch object (a/b; /v1, Kind=C): .x"}',
            errors.Invalid,
        ),
    ],
)
def test_answers_become_types(status: int, body: bytes, expected: type[errors.ApiError]) -> None:
    error = errors.error_from_response(status, body)
    assert type(error) is expected
    assert error.status == status
    assert error.message


def test_a_status_may_say_when_to_come_back() -> None:
    status = {"kind": "Status", "code": 429, "details": {"retryAfterSeconds": 3}}
    assert errors.error_from_status(status).retry_after == 3.0


@given(
    st.lists(st.binary(min_size=1, max_size=30).filter(lambda line: b"\n" not in line and line.strip())),
    st.data(),
)
async def test_lines_come_out_whole_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [line async for line in whole_lines(_stream(pieces))] == lines


@given(st.binary(min_size=1, max_size=20).filter(lambda rest: b"\n" not in rest))
async def test_an_unfinished_line_is_an_error(rest: bytes) -> None:
    with pytest.raises(CutLine):
        assert [line async for line in whole_lines(_stream([b"whole\n", rest]))] == []


async def test_a_line_without_end_is_given_up_on() -> None:
    with pytest.raises(CutLine, match="more than 10 bytes"):
        assert [line async for line in whole_lines(_stream([b"x" * 6, b"x" * 6]), limit=10)] == []


async def _stream(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


KEYS = st.builds(Key, st.sampled_from(["a", "b"]), st.sampled_from(["x", "y", "z"]))


@given(st.lists(st.tuples(KEYS, st.none() | st.sampled_from(["red", "blue"]))))
def test_a_cache_and_its_indexes_agree_with_a_dictionary(steps: list[tuple[Key, str | None]]) -> None:
    cache, model = Cache(), dict[Key, dict[str, Any]]()
    cache.add_index("colour", lambda obj: [obj["colour"]])
    for key, colour in steps:
        if colour is None:
            assert cache.remove(key) == model.pop(key, None)
        else:
            obj = {"metadata": {"name": key.name, "namespace": key.namespace}, "colour": colour}
            assert cache.put(key, obj) == model.get(key)
            model[key] = obj
    assert sorted(cache.keys()) == sorted(model)
    for namespace in ("a", "b"):
        assert len(cache.list(namespace)) == len([key for key in model if key.namespace == namespace])
    for colour in ("red", "blue"):
        expected = [model[key] for key in sorted(model) if model[key]["colour"] == colour]
        assert list(cache.by_index("colour", colour)) == expected
