"""E15: KEDA and the scaler prove to each other who they are, through a rotation under load too."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import ssl
from pathlib import Path

import grpc
import pytest
from noctaya_api.externalscaler.client import ClientTls, ExternalScalerClient
from noctaya_apiserver.client import load_objects
from noctaya_scenarios.certificates import Authority
from noctaya_scenarios.chat import Client
from noctaya_scenarios.release import REPOSITORY
from noctaya_scenarios.scene import WAKE_SECONDS, Scene
from noctaya_scenarios.traffic import Traffic

pytestmark = pytest.mark.any_gateways

SERVER, CLIENT = "noctaya-external-scaler-server", "noctaya-external-scaler-client"
AUTHENTICATION = REPOSITORY / "examples/security/mtls/authentication.yaml"
TAKEN_UP_SECONDS = 180
"""The kubelet brings a changed Secret within about a minute and a half; processes look every few seconds."""
METADATA = {"metricName": "pending", "targetValue": "10"}


def deploy(scene: Scene, authority: Authority) -> Client:
    """A service whose scaler asks for certificates of this authority."""
    (authentication,) = load_objects(AUTHENTICATION)
    scene.api.apply(
        {**authentication, "metadata": {**authentication["metadata"], "namespace": scene.namespace}}
    )
    give(scene, SERVER, authority.server(*hosts(scene)), trusted=authority.pem)
    give(scene, CLIENT, authority.client("keda"), trusted=authority.pem)
    reference = {"name": authentication["metadata"]["name"]}
    tls = {"serverSecretName": SERVER, "authenticationRef": reference}
    return scene.deploy(scaling={"externalScaler": {"tls": tls}})


def give(scene: Scene, secret: str, issued: tuple[str, str], *, trusted: str) -> None:
    """Put a certificate, its key and who is trusted into a Secret."""
    scene.secret(secret, **{"tls.crt": issued[0], "tls.key": issued[1], "ca.crt": trusted})


def hosts(scene: Scene) -> tuple[str, str]:
    host = f"chat-scaler.{scene.namespace}.svc"
    return host, f"{host}.cluster.local"


def fingerprint(pem: str) -> str:
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()


def served(scene: Scene) -> str:
    """Fingerprint of the certificate that the scaler shows."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(scene.scaler_address(), timeout=30) as plain,
        context.wrap_socket(plain) as secured,
    ):
        return hashlib.sha256(secured.getpeercert(binary_form=True) or b"").hexdigest()


def is_active(scene: Scene, tls: ClientTls | None) -> bool:
    """What the scaler answers. Raises grpc.aio.AioRpcError."""

    async def ask() -> bool:
        host, port = scene.scaler_address()
        name = (("grpc.ssl_target_name_override", hosts(scene)[0]),)
        target = f"{host}:{port}"
        async with ExternalScalerClient(target, metadata=METADATA, tls=tls, options=name) as client:
            return await client.is_active()

    return asyncio.run(ask())


def files(folder: Path, issued: tuple[str, str], *, trusted: str) -> ClientTls:
    folder.mkdir()
    tls = ClientTls(ca=folder / "ca.crt", cert=folder / "tls.crt", key=folder / "tls.key")
    tls.ca.write_text(trusted)
    tls.cert.write_text(issued[0])
    tls.key.write_text(issued[1])
    return tls


@pytest.mark.long
def test_e15_only_who_has_a_certificate_talks_to_the_scaler_and_a_cold_request_works(
    scene: Scene, tmp_path: Path
) -> None:
    ours, theirs = Authority("ours"), Authority("theirs")
    client = deploy(scene, ours)
    (trigger,) = scene.scaled_object()["spec"]["triggers"]
    assert trigger["authenticationRef"]["name"] == "noctaya-external-scaler-mtls"
    known = files(tmp_path / "known", ours.client("test"), trusted=ours.pem)
    scene.until(
        lambda: scene.scaler_sample("noctaya_scaler_demand_unknown") == 0, within=90, what="demand is known"
    )
    assert is_active(scene, known) is False
    stranger = files(tmp_path / "stranger", theirs.client("test"), trusted=ours.pem)
    for refused in (None, stranger):
        with pytest.raises(grpc.aio.AioRpcError) as error:
            is_active(scene, refused)
        assert error.value.code() == grpc.StatusCode.UNAVAILABLE
    seen = client.stream(tokens=5).result(WAKE_SECONDS)
    assert seen.whole, seen
    scene.until(lambda: scene.streams() == 1, within=60, what="KEDA listens, once")
    scene.await_zero()


@pytest.mark.long
def test_s2_certificates_and_their_authority_rotate_under_load(scene: Scene, tmp_path: Path) -> None:
    old, new = Authority("old"), Authority("new")
    client = deploy(scene, old)
    assert client.ask().status == 200
    both = f"{old.pem}{new.pem}"
    with Traffic(client, clients=2) as traffic:
        step = old.server(*hosts(scene))
        give(scene, CLIENT, new.client("keda"), trusted=both)
        give(scene, SERVER, step, trusted=both)
        scene.until(
            lambda: served(scene) == fingerprint(step[0]), within=TAKEN_UP_SECONDS, what="the first rotation"
        )
        last = new.server(*hosts(scene))
        give(scene, SERVER, last, trusted=new.pem)
        scene.until(
            lambda: served(scene) == fingerprint(last[0]), within=TAKEN_UP_SECONDS, what="the last rotation"
        )
        traffic.stop(after=100)
        traffic.assert_nothing_failed(at_least=100)
    former = files(tmp_path / "former", old.client("test"), trusted=both)
    with pytest.raises(grpc.aio.AioRpcError):
        is_active(scene, former)
    current = files(tmp_path / "current", new.client("test"), trusted=new.pem)
    assert is_active(scene, current) in {True, False}
    # KEDA has to log in again where its stream goes, with what it was given meanwhile.
    part = "scaler" if scene.gateways > 1 else "gateway"
    (pod,) = scene.ready_pods(part)
    scene.delete_pod(pod)
    scene.until(lambda: scene.ready_pods(part) not in ([], [pod]), within=180, what=f"another {part}")
    scene.await_zero()
    seen = client.stream(tokens=5).result(WAKE_SECONDS)
    assert seen.whole, seen
