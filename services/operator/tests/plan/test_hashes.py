"""Hashes of objects that are created once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_operator.hashes import data_hash, go_json, spec_hash

HASH_30_GI = "7b5f31087f17125b4e2ed38862d18f7e4f544bd16566c4356a7d243135113e35"
HASH_RWX_20_GI = "3597c7e03dccd6a827d53c1dc7359b9350923a5c91f180543ef849a12fb72d0a"


def claim_spec(mode: str, size: str) -> dict[str, object]:
    return {"accessModes": [mode], "resources": {"requests": {"storage": size}}}


def test_the_alphas_hashes_are_reproduced() -> None:
    assert spec_hash(claim_spec("ReadWriteOnce", "30Gi")) == HASH_30_GI
    shared = {**claim_spec("ReadWriteMany", "20Gi"), "storageClassName": "rwx"}
    assert spec_hash(shared) == HASH_RWX_20_GI


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": "<&>"}, '{"a":"\\u003c\\u0026\\u003e"}'),
        ("line\u2028para\u2029", '"line\\u2028para\\u2029"'),
        ('tab\tquote"back\\slash\nü😀', '"tab\\tquote\\"back\\\\slash\\nü😀"'),
        ("\b\f\x1f\x7f", '"\\b\\f\\u001f\x7f"'),
        ([1, True, None, 0], "[1,true,null,0]"),
    ],
)
def test_text_is_written_as_go_writes_it(value: object, text: str) -> None:
    assert go_json(value) == text


def test_the_data_hash_does_not_depend_on_the_order_it_is_told_in() -> None:
    assert data_hash(path="a", revision="b") == data_hash(revision="b", path="a")
    assert data_hash(path="a", revision="b").startswith("data-")


IDENTITY = st.fixed_dictionaries({"path": st.text(), "revision": st.text(), "cache": st.text()})


@given(IDENTITY, IDENTITY)
def test_other_data_has_another_hash(one: dict[str, str], other: dict[str, str]) -> None:
    assert (data_hash(**one) == data_hash(**other)) == (one == other)
