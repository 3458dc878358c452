"""Waiting, traffic, samples, certificates, names: what the scenarios rely on."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from noctaya_scenarios.certificates import Authority
from noctaya_scenarios.chat import Client
from noctaya_scenarios.lab import namespace_prefix
from noctaya_scenarios.manifests import merged, service_spec
from noctaya_scenarios.release import chart_hash
from noctaya_scenarios.samples import sample
from noctaya_scenarios.traffic import Traffic
from noctaya_scenarios.waiting import NotYet, during, until

Stub = Callable[..., AbstractContextManager[Client]]

METRICS = """\
# TYPE a gauge
a 1
ab 7
a_total{code="200",path="x\\"y"} 3
a_total{code="503",path="z"} 4e0
"""


@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        ("a", {}, 1.0),
        ("ab", {}, 7.0),
        ("a_total", {}, 7.0),
        ("a_total", {"code": "200"}, 3.0),
        ("a_total", {"code": "404"}, None),
        ("b", {}, None),
    ],
)
def test_a_sample_is_the_sum_of_what_carries_the_labels(
    name: str, labels: dict[str, str], value: float | None
) -> None:
    assert sample(METRICS, name, **labels) == value


def test_waiting_gives_the_first_true_value() -> None:
    values = iter([0, "", 5])
    assert until(lambda: next(values), within=5, what="a value", every=0.01) == 5


def test_waiting_in_vain_tells_what_was_there_and_what_a_look_said() -> None:
    def look() -> bool:
        raise AssertionError("no such pod")

    with pytest.raises(NotYet, match=r"(?s)within 0.1 s: a pod \(no such pod\).*the account"):
        until(look, within=0.1, what="a pod", seen=lambda: "the account", every=0.01)


def test_other_errors_end_the_wait_at_once() -> None:
    def look() -> bool:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        until(look, within=60, what="never")


def test_what_stops_being_so_ends_the_watch() -> None:
    values = iter([True, False])
    with pytest.raises(AssertionError, match=r"(?s)no longer so.*two replicas.*account"):
        during(lambda: next(values), seconds=60, what="two replicas", seen=lambda: "account")


def test_traffic_tells_what_each_request_came_to(stub: Stub) -> None:
    with stub() as client, Traffic(client, clients=2, pause=0.01) as traffic:
        until(lambda: traffic.outcomes.get("200", 0) >= 5, within=20, what="answers")
        client.post("/control", {"failStatus": 503})
        until(lambda: traffic.outcomes.get("503 None", 0) >= 2, within=20, what="refusals")
        traffic.stop()
        with pytest.raises(AssertionError, match=r"503.*first:\n  sent \d\d:\d\d:\d\d\.\d+, .* later: 503"):
            traffic.assert_nothing_failed(at_least=1)
        assert traffic.longest > 0


def test_traffic_goes_on_until_it_tells_something_but_not_for_ever(stub: Stub) -> None:
    with stub() as client, Traffic(client, clients=1, pause=0.01) as traffic:
        traffic.stop(after=7)
        traffic.assert_nothing_failed(at_least=7)
    with stub() as client, Traffic(client, clients=1, pause=0.01) as slow:
        slow.stop(after=10**9, within=0.1)


def test_traffic_that_hardly_flowed_proves_nothing(stub: Stub) -> None:
    with stub() as client, Traffic(client, clients=1, pause=60) as traffic:
        until(lambda: traffic.outcomes, within=20, what="an answer")
        traffic.stop()
    with pytest.raises(AssertionError, match="only 1 requests"):
        traffic.assert_nothing_failed(at_least=2)


def test_certificates_are_trusted_by_their_authority(tmp_path: Path) -> None:
    authority = Authority("test")
    certificate, key = authority.server("a.ns.svc", "b")
    for name, content in {"ca": authority.pem, "crt": certificate, "key": key}.items():
        (tmp_path / name).write_text(content)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    client = ssl.create_default_context(cafile=str(tmp_path / "ca"))
    handshake(client, server, "b")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(client, server, "c")
    other = ssl.create_default_context(cadata=Authority("other").pem)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(other, server, "b")


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> None:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=name)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(3):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue


def test_a_spec_is_merged_field_by_field_and_none_takes_a_field_away() -> None:
    spec = service_spec("r", scaling={"max": 3}, cache=None)
    assert (spec["scaling"]["max"], spec["scaling"]["target"]) == (3, 10)
    assert "cache" not in spec
    base = {"a": {"b": 1}}
    assert merged(base, {"a": {"c": 2}}) == {"a": {"b": 1, "c": 2}}
    assert base == {"a": {"b": 1}}


def test_names_of_namespaces_are_legal() -> None:
    assert namespace_prefix("test_E1[two gateways]-x" + "y" * 60).startswith("test-e1-two-gateways-x")
    assert len(namespace_prefix("y" * 99)) <= 40
    assert namespace_prefix("___") == "scenario"


def test_another_chart_has_another_hash(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("a: 1")
    before = chart_hash(tmp_path)
    assert chart_hash(tmp_path) == before
    (tmp_path / "values.yaml").write_text("a: 2")
    assert chart_hash(tmp_path) != before
