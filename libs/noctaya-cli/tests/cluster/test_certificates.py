"""How `noctaya doctor` learns when a certificate ends: from the scaler that shows it, without a right to
Secrets; from the Secret where no scaler can be asked."""

import base64
from datetime import timedelta

import pytest
import trustme
from noctaya_cli.cluster.access import Cluster
from noctaya_cli.cluster.certificate_checks import EXPIRY
from noctaya_cli.cluster.doctor import examine
from noctaya_cli.cluster.finding import Finding

from . import objects
from .conftest import NOW
from .fake_api import FakeApi

SECRET = "/api/v1/namespaces/models/secrets/scaler-tls"
DAY = timedelta(days=1)
ENDS = [
    (-3 * DAY, "problem", "expired 3 days ago"),
    (timedelta(), "problem", "expired 0 days ago"),
    (5.04 * DAY, "warning", "expires in 5 days"),
    (13.9 * DAY, "warning", "expires in 14 days"),
    (14.1 * DAY, "good", "good for 14 days"),
]


@pytest.fixture
def secured(api: FakeApi) -> FakeApi:
    """A healthy cluster whose one service has a certificate that nobody tells of yet."""
    service = objects.llm_service()
    service["spec"]["scaling"]["externalScaler"] = {"tls": {"serverSecretName": "scaler-tls"}}
    api.collections[objects.ALL_SERVICES] = [service]
    return api


def shows(api: FakeApi, pod: objects.Object, value: str, *, port: int = 8080) -> None:
    api.texts[objects.metrics_path(pod, port)] = f"{objects.metrics()}{EXPIRY} {value}\n"


def stored(api: FakeApi, expires: timedelta) -> None:
    pem = trustme.CA().issue_cert("chat-scaler", not_after=NOW + expires).cert_chain_pems[0].bytes()
    api.objects[SECRET] = {"data": {"tls.crt": base64.b64encode(pem).decode()}}


def scaler_pod(number: int = 1) -> objects.Object:
    pod = objects.gateway_pod(number=number)
    pod["metadata"]["name"] = f"chat-scaler-{number}"
    pod["metadata"]["labels"] = {
        "app.kubernetes.io/managed-by": "noctaya",
        "serving.noctaya.io/scaler": "chat",
    }
    return pod


def told(cluster: Cluster) -> Finding:
    (found,) = [each for each in examine(cluster, now=NOW) if each.area == "certificates"]
    return found


@pytest.mark.parametrize(("expires", "level", "what"), ENDS)
def test_the_gateway_that_shows_it_is_asked_and_no_secret_is_read(
    secured: FakeApi, cluster: Cluster, expires: timedelta, level: str, what: str
) -> None:
    shows(secured, objects.gateway_pod(), repr((NOW + expires).timestamp()))
    found = told(cluster)
    assert (found.level, found.what.startswith("models/scaler-tls, the certificate of chat's scaler")) == (
        level,
        True,
    )
    assert what in found.what
    assert bool(found.remedy) == (level != "good")
    assert [path for _, path in secured.seen if "secrets" in path] == []


def test_with_an_aggregate_scaler_that_one_is_asked_and_the_earliest_end_counts(
    secured: FakeApi, cluster: Cluster
) -> None:
    for number, days in ((1, 90), (2, 4)):
        secured.collections["/api/v1/pods"].append(scaler_pod(number))
        ends = (NOW + days * DAY + timedelta(hours=1)).timestamp()
        shows(secured, scaler_pod(number), repr(ends), port=9091)
    assert "expires in 4 days" in told(cluster).what


@pytest.mark.parametrize(("expires", "level", "what"), ENDS)
def test_where_no_scaler_can_be_asked_the_secret_says_it(
    secured: FakeApi, cluster: Cluster, expires: timedelta, level: str, what: str
) -> None:
    secured.texts.clear()
    stored(secured, expires)
    found = told(cluster)
    assert (found.level, what in found.what) == (level, True)


@pytest.mark.parametrize("value", ["NaN", "+Inf", "1e300", "-1", "soon"])
def test_a_scaler_that_tells_nonsense_is_not_believed(secured: FakeApi, cluster: Cluster, value: str) -> None:
    shows(secured, objects.gateway_pod(), value)
    secured.forbidden.add("/secrets/")
    found = told(cluster)
    assert (found.level, "its scaler shows none yet" in found.what) == ("unknown", True)


def test_a_certificate_that_can_not_be_read_is_a_problem(secured: FakeApi, cluster: Cluster) -> None:
    secured.objects[SECRET] = {"data": {"tls.crt": "bm9uZQ=="}}
    assert (told(cluster).level, told(cluster).remedy) == ("problem", "Issue it again.")


def test_a_secret_that_is_not_there_is_a_problem(secured: FakeApi, cluster: Cluster) -> None:
    assert told(cluster).level == "problem"
    assert "doesn't exist" in told(cluster).what


def test_what_nobody_may_tell_is_unknown_and_says_which_right_it_takes(
    secured: FakeApi, cluster: Cluster
) -> None:
    shows(secured, objects.gateway_pod(), "1")
    secured.forbidden |= {"/secrets/", "/proxy/"}
    found = told(cluster)
    assert (found.level, "the right to get pods/proxy" in found.what) == ("unknown", True)
    assert found.remedy
