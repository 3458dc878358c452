"""What stands in a cluster's objects never steers the terminal of who looks at it, and ends no command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_cli.cluster.access import ClusterError, NotAllowed, NotThere, Outdated
from noctaya_cli.main import app
from typer.testing import CliRunner

from ..cluster import objects
from ..cluster.conftest import NOW
from .hostile import JSON, NUMBERS, SCALARS, TEXT, TRICKS, raw

Object = dict[str, Any]
BAD = (("Degraded", "True"), ("AutoscalingReady", "False"), ("Ready", "False"), ("Kept", "False"))
PREWARM = ("state", "bytesDone", "bytesTotal", "bytesPerSecond", "message")
COMMANDS = (
    ("status", "-A"),
    ("status", "-A", "-o", "json"),
    ("explain", "chat"),
    ("explain", "chat", "-o", "json"),
    ("explain", "chat", "-o", "svg"),
    ("doctor",),
    ("doctor", "-o", "json"),
    ("wake", "chat"),
    ("unpin", "chat", "-o", "json"),
)


class Cluster:
    """A cluster of one service that holds what it is given."""

    name = "test"

    def __init__(self, service: Object, *, events: list[Object], metrics: str, refusal: ClusterError | None):
        self.namespace = str(service["metadata"]["namespace"])
        self._service = service
        self._events = events
        self._metrics = metrics
        self._refusal = refusal

    def now(self) -> Any:
        return NOW

    def get(self, path: str) -> Object:
        if "/llmservices/" in path:
            return self._service
        self._refuse()
        return {"status": {"conditions": [{"type": "Established", "status": "False"}]}}

    def items(self, path: str, *, labels: str = "", fields: str = "") -> list[Object]:
        if path.endswith("/llmservices"):
            return [self._service]
        if path.endswith("/events"):
            return self._events
        if path.endswith("/pods") and "scaler" not in labels:
            return [objects.gateway_pod()]
        self._refuse()
        return [objects.operator()] if path.endswith("/deployments") else []

    def text(self, path: str) -> str:
        return self._metrics

    def merge(self, path: str, change: Object) -> Object:
        self._refuse()
        return {}

    def create(self, path: str, obj: Object) -> Object:
        self._refuse()
        return {"status": {"allowed": False}}

    def _refuse(self) -> None:
        if self._refusal is not None:
            raise self._refusal


CONDITIONS = st.lists(
    st.builds(
        objects.condition,
        st.sampled_from(["Ready", "Degraded", "AutoscalingReady", "Kept"]),
        st.sampled_from(["True", "False", "Unknown"]),
        TEXT | st.sampled_from(["OOMKilled", "PrewarmFailed", "InvalidKeep"]),
        TEXT,
    ),
    max_size=4,
)
TIMES = st.sampled_from(["2026-11-30T09:50:00.000Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59Z"])
RECORDS = st.builds(
    lambda record, text, moment, outcome: {
        **record, "id": text, "message": text, "requested": moment, "outcome": outcome,
    },
    st.sampled_from([objects.ACTIVATION, {}]),
    TEXT,
    TIMES,
    st.sampled_from(["Succeeded", "Failed", "InProgress"]),
)  # fmt: skip
EVENTS = st.lists(
    st.builds(
        lambda at, reason, note: {"eventTime": at, "reason": reason, "note": note, "type": "Warning"},
        TIMES | TEXT,
        TEXT,
        TEXT,
    ),
    max_size=3,
)


@st.composite
def services(draw: st.DrawFn) -> Object:
    service = objects.llm_service(conditions=draw(CONDITIONS))
    service["spec"]["model"]["source"]["uri"] = draw(TEXT)
    service["spec"]["scaling"]["externalScaler"] = {"tls": {"serverSecretName": "tls"}}
    service["metadata"]["annotations"] = {"serving.noctaya.io/keep": draw(TEXT)}
    service["status"] |= {
        "phase": draw(TEXT),
        "resolvedRuntime": draw(TEXT),
        "lastActivation": draw(RECORDS | JSON),
        "recentActivations": draw(st.lists(RECORDS | JSON, max_size=2) | JSON),
        "prewarm": draw(st.dictionaries(st.sampled_from(PREWARM), SCALARS, min_size=2) | JSON),
        "keep": draw(st.dictionaries(st.sampled_from(["state", "until"]), TEXT) | JSON),
    }
    if draw(st.booleans()):
        service["status"][draw(st.sampled_from(["conditions", "replicas", "observedGeneration"]))] = draw(
            JSON
        )
    return service


REFUSALS = st.sampled_from([ClusterError, NotAllowed, NotThere, Outdated])
CLUSTERS = st.builds(
    Cluster,
    services(),
    events=EVENTS,
    metrics=st.lists(
        st.builds(
            "{} {}".format,
            st.sampled_from(
                [
                    "noctaya_gateway_demand",
                    "noctaya_gateway_pending",
                    "noctaya_gateway_scaler_streams",
                    'noctaya_gateway_scaler_certificate_expiry_timestamp_seconds{side="server"}',
                ]
            ),
            NUMBERS,
        )
        | TEXT,
        max_size=4,
    ).map("\n".join),
    refusal=st.none() | st.builds(lambda kind, text: kind(text), REFUSALS, TEXT),
)


@pytest.fixture(scope="module", autouse=True)
def _no_waiting() -> Iterator[None]:
    """Nothing here waits; a command that would is a fault."""
    with patch("time.sleep", side_effect=AssertionError("it waits")):
        yield


def run(command: tuple[str, ...], cluster: Cluster) -> None:
    """Run a command, and look at every character it shows."""
    with (
        patch("noctaya_cli.cluster_commands.connect", return_value=cluster),
        patch("noctaya_cli.keep_commands.connect", return_value=cluster),
    ):
        done = CliRunner().invoke(app, list(command))
    assert done.exception is None or isinstance(done.exception, SystemExit), (command, done.exception)
    assert raw(done.output) == set(), command
    if done.exit_code == 0 and "json" in command:
        json.loads(done.stdout)
    if done.exit_code == 0 and "svg" in command:
        assert ElementTree.fromstring(done.stdout).tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize("refused", [False, True], ids=["answers", "refuses"])
@pytest.mark.parametrize("trick", TRICKS, ids=ascii)
def test_fuzz_a_trick_in_every_place_of_a_cluster_is_shown_and_not_obeyed(trick: str, refused: bool) -> None:
    service = objects.llm_service(
        conditions=[objects.condition(kind, bad, trick, trick) for kind, bad in BAD],
        phase=trick,
        resolvedRuntime=trick,
        lastActivation={**objects.ACTIVATION, "id": trick, "message": trick, "outcome": "Failed"},
        recentActivations=[{**objects.ACTIVATION, "message": trick}, trick],
        prewarm={"state": trick, "bytesDone": 10**400, "bytesTotal": 10**400, "message": trick},
        keep={"state": trick, "until": trick},
    )
    service["metadata"]["annotations"] = {"serving.noctaya.io/keep": trick}
    service["spec"]["model"]["source"]["uri"] = trick
    service["spec"]["scaling"] |= {
        "externalScaler": {"tls": {"serverSecretName": trick}},
        "drainTimeout": trick,
    }
    event = {"eventTime": trick, "reason": trick, "note": trick, "type": "Warning"}
    cluster = Cluster(
        service,
        events=[event, {**event, "eventTime": "2026-11-30T09:50:00"}],
        metrics=f"noctaya_gateway_demand {trick}\n{trick}",
        refusal=ClusterError(trick) if refused else None,
    )
    for command in COMMANDS:
        run(command, cluster)


@given(command=st.sampled_from(COMMANDS), cluster=CLUSTERS)
def test_fuzz_a_command_shows_what_stands_in_a_cluster_and_obeys_none_of_it(
    command: tuple[str, ...], cluster: Cluster
) -> None:
    run(command, cluster)
