"""oci:// sources: where they are, and when two of them are the same content."""

import pytest
from noctaya_prewarm.errors import BadSettings
from noctaya_prewarm.oci_source import parse_oci_source, registry_of, same_source

A, B = "a" * 64, "b" * 64


@pytest.mark.parametrize(
    ("source", "registry", "repository"),
    [
        (f"oci://reg.example:5000/team/model@sha256:{A}", "reg.example:5000", "team/model"),
        (f"oci://reg.example/model@sha256:{A}", "reg.example", "model"),
        ("oci://reg.example:5000/team/model:v1.2", "reg.example:5000", "team/model"),
    ],
)
def test_registry_and_repository(source: str, registry: str, repository: str) -> None:
    assert registry_of(parse_oci_source(source)) == (registry, repository)


@pytest.mark.parametrize("source", ["hf://org/name", "pvc://claim", "oci://reg/model", "oci://", "x"])
def test_what_is_no_artifact_is_refused(source: str) -> None:
    with pytest.raises(BadSettings):
        parse_oci_source(source)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("hf://org/name", "hf://org/name", True),
        ("hf://org/name", "hf://org/other", False),
        (f"oci://one/model@sha256:{A}", f"oci://two:5000/mirror/model@sha256:{A}", True),
        (f"oci://one/model@sha256:{A}", f"oci://one/model@sha256:{B}", False),
        (f"oci://one/model@sha256:{A}", "oci://one/model:v1", False),
        ("oci://one/model:v1", "oci://two/model:v1", False),
        ("nonsense", "other nonsense", False),
        ("hf://org/name", f"oci://one/model@sha256:{A}", False),
    ],
)
def test_two_sources_are_the_same_when_they_are_equal_or_pin_one_digest(
    one: str, other: str, same: bool
) -> None:
    assert same_source(one, other) is same
    assert same_source(other, one) is same
