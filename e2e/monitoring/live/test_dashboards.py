"""Each query of the dashboards has data about a service that lived a little, and the right data if known."""

from __future__ import annotations

import math

import httpx
import pytest
from noctaya_apiserver.client import wait_for
from noctaya_monitoring.clients import PATH, clients
from noctaya_monitoring.dashboard import Query
from noctaya_monitoring.dashboards import ALL, FLEET, SERVICE
from noctaya_monitoring.fleet import MODELS, Fleet
from noctaya_monitoring.prometheus import Prometheus

from .conftest import KEY

WITHIN = 60.0
HEADERS = {"x-api-key": KEY}
OUTCOME = f"llmservice=chat,namespace={MODELS},outcome=Succeeded"
BODY = {"model": "stub", "messages": [{"role": "user", "content": "hi"}]}
ANY = [
    pytest.param(query, id=f"{dashboard.uid}: {title} {query.legend}")
    for dashboard in ALL
    for title, query in dashboard.queries()
]


def panel(title: str, dashboard: object = FLEET) -> str:
    (found,) = [query for name, query in dashboard.queries() if name == title]  # type: ignore[attr-defined]
    return str(found.of(namespace=MODELS, service="chat"))


@pytest.fixture(scope="module")
def lived(fleet: Fleet, prometheus: Prometheus) -> None:
    """Two cold starts of `chat`, with all that can happen to a client, and then nothing any more."""
    chat = fleet.services["chat"]
    assert chat.keda is not None

    def control(behaviour: dict[str, int | bool]) -> None:
        url = f"http://127.0.0.1:{chat.stub.http()}/control"
        httpx.post(url, json=behaviour, trust_env=False).raise_for_status()

    chat.keda.load_seconds = None
    with clients(chat.url, 3, pause=0.1, key=KEY), clients(chat.url, 1, pause=0.5, patience=0.2, key=KEY):
        prometheus.await_value(panel("Held requests") + " > 0", lambda held: held >= 3, within=WITHIN)
        cold = httpx.get(f"{chat.url}/favicon.ico", headers=HEADERS, trust_env=False)
        assert cold.status_code == 503
        chat.keda.load_seconds = 3.0
        prometheus.await_value(succeeded(), lambda count: count == 1, within=WITHIN)
        control({"cutAfter": 2})
        cut = 'sum(noctaya_gateway_upstream_errors_total{llmservice="chat",kind="cut"})'
        prometheus.await_value(cut, lambda count: count > 0, within=WITHIN)
        control({"cutAfter": 0, "healthy": False})
        sick = 'sum(noctaya_gateway_control_reconnects_total{llmservice="chat",kind="probe"})'
        prometheus.await_value(sick, lambda count: count > 0, within=WITHIN)
        control({"healthy": True})
    at_zero(fleet)
    answer = httpx.post(f"{chat.url}{PATH}", json=BODY, headers=HEADERS, trust_env=False, timeout=60.0)
    assert answer.headers["x-noctaya-cold-start"] == "true"
    prometheus.await_value(succeeded(), lambda count: count == 2, within=WITHIN)
    at_zero(fleet)


@pytest.fixture(scope="module")
def downloaded(prometheus: Prometheus, download: str) -> None:
    """The operator has asked the agent."""
    assert download
    prometheus.await_value("sum(noctaya_operator_prewarm_bytes_total)", lambda size: size > 0, within=WITHIN)


def succeeded() -> str:
    return f'sum(noctaya_operator_activations_total{{namespace="{MODELS}",llmservice="chat"}})'


def at_zero(fleet: Fleet) -> None:
    """The gateway finds no model any more, and the operator's record of the activation is closed: what comes
    next is another one."""
    url = f"{fleet.services['chat'].url}/v1/models"

    def cold() -> bool:
        (model,) = httpx.get(url, headers=HEADERS, trust_env=False).json()["data"]
        return bool(model.get("noctaya", {}).get("state") == "cold")

    wait_for(cold, within=WITHIN, what="a cold gateway")
    fleet.world().await_status(
        lambda status: bool(status.get("lastActivation", {}).get("ended")), "chat", within=WITHIN
    )


@pytest.mark.parametrize("query", ANY)
@pytest.mark.usefixtures("lived", "downloaded")
def test_every_query_answers_with_data(prometheus: Prometheus, query: Query) -> None:
    found = prometheus.values(query.of(namespace=MODELS, service="chat"))
    assert any(math.isfinite(value) for value in found.values()), found


@pytest.mark.usefixtures("lived")
def test_the_first_cold_start_is_counted_too(prometheus: Prometheus) -> None:
    assert prometheus.values(panel("Cold starts an hour"))[OUTCOME] == 2
    buckets = prometheus.values(panel("Time of cold starts", SERVICE))
    assert buckets["le=+Inf"] == 2


@pytest.mark.usefixtures("lived")
def test_the_time_of_cold_starts_is_that_of_the_model(prometheus: Prometheus) -> None:
    """It takes three seconds to load, as a Pod's whole seconds tell, and a little more until it is seen."""
    mean = prometheus.values(panel("Time of cold starts, mean of an hour"))
    assert 2 <= mean[f"llmservice=chat,namespace={MODELS}"] < 15
    phases = prometheus.values(panel("Cold starts by phase, mean of an hour", SERVICE))
    assert 2 <= phases["phase=load"] <= mean[f"llmservice=chat,namespace={MODELS}"] + 1


@pytest.mark.usefixtures("lived")
def test_services_by_phase_are_those_of_the_cluster(prometheus: Prometheus, fleet: Fleet) -> None:
    def counted() -> bool:
        listed = fleet.plane.client().items("/apis/serving.noctaya.io/v1alpha1/llmservices")
        phases = [each.get("status", {}).get("phase", "") for each in listed]
        shown = prometheus.values(panel("Services by phase"))
        return all(shown.get(f"phase={phase}") == phases.count(phase) for phase in set(phases))

    wait_for(counted, what="phases as the API server has them")


@pytest.mark.usefixtures("lived")
def test_a_long_wait_leads_to_its_request_and_trace(prometheus: Prometheus) -> None:
    """Exemplars reach Prometheus, which reads OpenMetrics where it is offered."""
    found = prometheus.exemplars('noctaya_gateway_activation_wait_seconds_bucket{llmservice="chat"}')
    assert found
    assert all(len(each["activation_id"]) == 32 for each in found)


def test_the_variables_find_every_service(prometheus: Prometheus) -> None:
    services = prometheus.values("group by (namespace, llmservice) (noctaya_gateway_demand)")
    assert {f"llmservice=chat,namespace={MODELS}", "llmservice=pair,namespace=pairs"} <= services.keys()
