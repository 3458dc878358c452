"""The control plane's command lines and certificates."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from noctaya_apiserver.pki import Pki
from noctaya_cluster.host import control
from noctaya_cluster.host.addresses import Addresses
from noctaya_cluster.host.layout import NODES, Layout
from noctaya_cluster.host.users import users, write_credentials

PROGRAMS = {
    name: Path("/parts") / name
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
}
ADDRESSES = Addresses(200)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "state")
    layout.pki.mkdir(parents=True)
    return layout


@pytest.fixture
def pki(layout: Layout) -> Pki:
    made = control.pki(layout, ADDRESSES)
    made.create()
    return made


def test_the_server_certificate_names_every_way_to_reach_it(pki: Pki) -> None:
    certificate = x509.load_pem_x509_certificate(pki.certificate.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    dns = set(names.get_values_for_type(x509.DNSName))
    assert {"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"} <= dns
    addresses = {str(each) for each in names.get_values_for_type(x509.IPAddress)}
    assert addresses == {"127.0.0.1", "10.200.0.1", "10.202.0.1"}


@pytest.mark.parametrize(
    ("client", "user", "groups"),
    [
        (control.KUBELET_CLIENT, "kube-apiserver", ["system:masters"]),
        (control.FRONT_PROXY, "front-proxy", []),
    ],
)
def test_clients_are_who_kubernetes_takes_them_for(
    pki: Pki, client: str, user: str, groups: list[str]
) -> None:
    certificate = x509.load_pem_x509_certificate(pki.client_certificate(client).read_bytes())
    authority = x509.load_pem_x509_certificate(pki.ca_file.read_bytes())

    certificate.verify_directly_issued_by(authority)
    subject = certificate.subject
    assert [each.value for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == [user]
    assert [each.value for each in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == groups
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert pki.client_key(client).stat().st_mode & 0o077 == 0


def test_every_file_that_the_api_server_is_told_of_is_there(layout: Layout, pki: Pki) -> None:
    write_credentials(layout, server=control.server_url(ADDRESSES), ca_file=pki.ca_file)

    argv = control.api_server(PROGRAMS, layout, ADDRESSES, pki)

    files = [Path(word.partition("=")[2]) for word in argv if "=/" in word]
    assert len(files) >= 10
    assert [file for file in files if not file.exists()] == []


def test_keda_can_serve_an_api_of_its_own(layout: Layout, pki: Pki) -> None:
    argv = control.api_server(PROGRAMS, layout, ADDRESSES, pki)

    assert "--enable-aggregator-routing=true" in argv
    assert "--requestheader-allowed-names=front-proxy" in argv
    assert "--requestheader-username-headers=X-Remote-User" in argv


def test_the_autoscaler_looks_every_five_seconds(layout: Layout, pki: Pki) -> None:
    argv = control.controller_manager(PROGRAMS, layout, ADDRESSES, pki)

    assert "--horizontal-pod-autoscaler-sync-period=5s" in argv
    assert "--allocate-node-cidrs=false" in argv


def test_nobody_waits_for_a_lease_or_a_disk(layout: Layout, pki: Pki) -> None:
    assert "--unsafe-no-fsync" in control.etcd(PROGRAMS, layout.machine("control"))
    for argv in (
        control.controller_manager(PROGRAMS, layout, ADDRESSES, pki),
        control.scheduler(PROGRAMS, layout),
    ):
        assert "--leader-elect=false" in argv


def test_etcd_and_its_data_are_reached_by_the_control_machine_alone(layout: Layout) -> None:
    argv = control.etcd(PROGRAMS, layout.machine("control"))

    assert f"--data-dir={layout.machine('control') / 'etcd'}" in argv
    assert all("127.0.0.1" in word for word in argv if "url" in word)


def test_nodes_may_do_what_nodes_may_and_have_a_token_each(layout: Layout, pki: Pki) -> None:
    write_credentials(layout, server=control.server_url(ADDRESSES), ca_file=pki.ca_file)

    rows = list(csv.reader((layout.pki / "tokens.csv").read_text().splitlines()))
    by_user = {row[1]: row for row in rows}
    for node in NODES:
        assert by_user[f"system:node:{node}"][3] == "system:nodes"
    assert len({row[0] for row in rows}) == len(rows) == len(users())


def test_kubeconfigs_are_private_and_point_at_the_cluster(layout: Layout, pki: Pki) -> None:
    write_credentials(layout, server=control.server_url(ADDRESSES), ca_file=pki.ca_file)

    for file in (layout.kubeconfig, *(layout.user_config(name) for name in users() if name != "admin")):
        config = yaml.safe_load(file.read_text())
        assert config["clusters"][0]["cluster"]["server"] == "https://10.200.0.1:6443"
        assert config["current-context"] == "noctaya"
        assert file.stat().st_mode & 0o077 == 0
