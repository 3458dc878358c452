"""Manifests: what is accepted, and what a lying registry or a strange artifact is told (M4, M5)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_prewarm.errors import PrewarmError, Refused
from noctaya_prewarm.manifest import MAX_LAYERS, Layer, parse_digest, parse_manifest
from oci_artifacts import INDEX, LAYER, MANIFEST, TITLE, descriptor, manifest_of, sha256, titled

GOOD = titled(b"weights", "model.safetensors")


def test_layers_keep_digest_size_and_annotations() -> None:
    found = parse_manifest(manifest_of([GOOD, descriptor(b"x")]))
    assert found.layers == (
        Layer(
            number=1,
            media_type=LAYER,
            digest=sha256(b"weights"),
            size=7,
            annotations={TITLE: "model.safetensors"},
        ),
        Layer(number=2, media_type=LAYER, digest=sha256(b"x"), size=1, annotations={}),
    )
    assert str(found.layers[0]) == "layer 1 ('model.safetensors')"
    assert str(found.layers[1]) == "layer 2"


@pytest.mark.parametrize("media_type", [MANIFEST, "application/vnd.docker.distribution.manifest.v2+json", ""])
def test_kinds_of_manifests(media_type: str) -> None:
    assert parse_manifest(manifest_of([GOOD], mediaType=media_type)).layers


@pytest.mark.parametrize(
    "media_type", [INDEX, "application/vnd.docker.distribution.manifest.list.v2+json", ""]
)
def test_an_index_is_refused_with_the_digests_to_choose_from(media_type: str) -> None:
    members = [{"digest": f"sha256:{digit * 64}"} for digit in "abcdef"]
    content = json.dumps({"schemaVersion": 2, "mediaType": media_type, "manifests": members}).encode()
    with pytest.raises(Refused, match=f"index of several.*sha256:{'a' * 64}, .*…"):
        parse_manifest(content)


@pytest.mark.parametrize("members", [[], None, "x", [1], [{"digest": "evil\n"}]])
def test_a_malformed_index_is_refused_too(members: Any) -> None:
    with pytest.raises(Refused, match="pin the digest of a manifest"):
        parse_manifest(json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": members}).encode())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"schemaVersion": 1}, "schemaVersion"),
        ({"schemaVersion": True}, "schemaVersion"),
        ({"schemaVersion": "2"}, "schemaVersion"),
        ({"mediaType": "application/vnd.oci.artifact.manifest.v1+json"}, "not of an OCI image manifest"),
        ({"mediaType": "text/html"}, "text/html"),
        ({"layers": None}, "no list of layers"),
        ({"layers": {}}, "no list of layers"),
        ({"layers": [GOOD] * (MAX_LAYERS + 1)}, f"more than {MAX_LAYERS}"),
        ({"layers": [GOOD] * 10_000}, "10000 layers"),
        ({"layers": [5]}, "layer 1 of the manifest is not an object"),
        ({"layers": [GOOD, GOOD | {"mediaType": ""}]}, "layer 2 has no media type"),
        ({"layers": [GOOD | {"mediaType": 3}]}, "no media type"),
        ({"layers": [GOOD | {"digest": "sha512:" + "a" * 128}]}, "algorithm 'sha512'; only sha256"),
        ({"layers": [GOOD | {"digest": "md5:" + "a" * 32}]}, "algorithm 'md5'"),
        ({"layers": [GOOD | {"digest": "sha256:" + "A" * 64}]}, "malformed digest"),
        ({"layers": [GOOD | {"digest": "sha256:" + "a" * 63}]}, "malformed digest"),
        ({"layers": [GOOD | {"digest": "../../etc/passwd"}]}, "malformed digest"),
        ({"layers": [GOOD | {"digest": "sha256:" + "a" * 64 + "\n"}]}, "malformed digest"),
        ({"layers": [GOOD | {"digest": None}]}, "malformed digest"),
        ({"layers": [GOOD | {"size": -1}]}, "impossible size"),
        ({"layers": [GOOD | {"size": 1.5}]}, "impossible size"),
        ({"layers": [GOOD | {"size": "7"}]}, "impossible size"),
        ({"layers": [GOOD | {"size": True}]}, "impossible size"),
        ({"layers": [GOOD | {"size": 1 << 60}]}, "impossible size"),
        ({"layers": [{key: GOOD[key] for key in ("mediaType", "digest")}]}, "impossible size"),
        ({"layers": [GOOD | {"annotations": {TITLE: 5}}]}, "annotations of layer 1"),
        ({"layers": [GOOD | {"annotations": ["x"]}]}, "annotations of layer 1"),
    ],
)
def test_m5_a_malformed_manifest_is_refused_by_name(change: dict[str, Any], named: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_manifest(manifest_of([GOOD], **change))
    assert named in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"schemaVersion":2,"schemaVersion":2,"layers":[]}',
        b'{"schemaVersion":2,"layers":[{"size":NaN}]}',
        b'{"schemaVersion":2,"layers":' + b"[" * 100_000,
        b"<html>not found</html>",
    ],
)
def test_what_is_no_json_object_is_refused(content: bytes) -> None:
    with pytest.raises(Refused, match="the manifest is not"):
        parse_manifest(content)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["mediaType", "digest", "size", "annotations", TITLE])
LAYERS = st.lists(st.dictionaries(FIELDS, JSON, max_size=4) | st.just(GOOD), max_size=3)


@given(st.dictionaries(st.sampled_from(["schemaVersion", "mediaType", "layers", "manifests"]), JSON | LAYERS))
def test_any_json_is_a_manifest_or_one_named_error(document: dict[str, Any]) -> None:
    try:
        found = parse_manifest(json.dumps({"schemaVersion": 2, **document}).encode())
    except PrewarmError as error:
        assert str(error).isprintable()
        return
    assert all(len(layer.digest) == 64 and layer.size >= 0 for layer in found.layers)


@given(st.binary(max_size=100))
def test_any_bytes_are_no_worse(content: bytes) -> None:
    with pytest.raises(Refused):
        parse_manifest(content)


@given(st.text(max_size=80) | st.from_regex(r"[a-z0-9]{3,7}:[0-9a-f]{0,70}"))
def test_a_digest_is_64_hexadecimal_digits_or_refused(text: str) -> None:
    try:
        found = parse_digest(text, "layer 1")
    except Refused:
        return
    assert text == f"sha256:{found}"
    assert len(found) == 64
