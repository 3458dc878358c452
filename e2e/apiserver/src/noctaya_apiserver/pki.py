"""Certificates of the API server and its clients, key of its service accounts; new for each control plane."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LIFETIME = timedelta(days=30)


class Pki:
    """Files in `folder`: ca.crt, apiserver.crt and .key, service-accounts.key and .pub, <client>.crt, .key.

    Args:
        names: further host names and addresses of the API server, besides those of loopback.
        clients: certificates for clients, by the name of their files: common name and organizations, which
            are a user and its groups to Kubernetes.
    """

    def __init__(
        self,
        folder: Path,
        *,
        names: Iterable[str] = (),
        clients: Mapping[str, tuple[str, tuple[str, ...]]] | None = None,
    ) -> None:
        self._folder = folder
        self._names = ("localhost", "kubernetes.default.svc", "127.0.0.1", *names)
        self._clients = dict(clients or {})
        self.ca_file = folder / "ca.crt"
        self.certificate = folder / "apiserver.crt"
        self.key = folder / "apiserver.key"
        self.service_accounts = folder / "service-accounts.key"
        self.service_accounts_public = folder / "service-accounts.pub"

    def create(self) -> None:
        """Write all files; keys are readable by us alone."""
        ca_key = ec.generate_private_key(ec.SECP256R1())
        ca_name = _name("noctaya-apiserver-ca")
        usage = {
            "content_commitment": False,
            "key_encipherment": False,
            "data_encipherment": False,
            "key_agreement": False,
            "encipher_only": False,
            "decipher_only": False,
        }
        ca = (
            _certificate(subject=ca_name, issuer=ca_name, key=ca_key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(
                x509.KeyUsage(digital_signature=True, key_cert_sign=True, crl_sign=True, **usage),
                critical=True,
            )
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
            .sign(ca_key, hashes.SHA256())
        )
        self.ca_file.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
        issuer = _Issuer(ca_name, ca_key)
        names = x509.SubjectAlternativeName([_general_name(name) for name in self._names])
        server = (_name("kube-apiserver"), x509.OID_SERVER_AUTH, names)
        issuer.write(self.certificate, self.key, *server)
        for file, (common, organizations) in self._clients.items():
            subject = _name(common, organizations)
            issuer.write(self.client_certificate(file), self.client_key(file), subject, x509.OID_CLIENT_AUTH)
        tokens_key = ec.generate_private_key(ec.SECP256R1())
        _write_key(self.service_accounts, tokens_key)
        self.service_accounts_public.write_bytes(
            tokens_key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )

    def client_certificate(self, client: str) -> Path:
        """The certificate of a client."""
        return self._folder / f"{client}.crt"

    def client_key(self, client: str) -> Path:
        """The key of a client."""
        return self._folder / f"{client}.key"


class _Issuer:
    """Signs with the authority's key, which lives no longer than this object."""

    def __init__(self, name: x509.Name, key: ec.EllipticCurvePrivateKey) -> None:
        self._name = name
        self._key = key

    def write(
        self,
        certificate: Path,
        key_file: Path,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None = None,
    ) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            _certificate(subject=subject, issuer=self._name, key=key)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(authority, critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        _write_key(key_file, key)


def _name(common: str, organizations: Iterable[str] = ()) -> x509.Name:
    groups = (x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations)
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common), *groups])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:  # no address, then a host name
        return x509.DNSName(name)


def _certificate(
    *, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + LIFETIME)
    )


def _write_key(file: Path, key: ec.EllipticCurvePrivateKey) -> None:
    file.touch(mode=0o600)
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
