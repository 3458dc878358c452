"""Certificate of the API server and key of its service accounts, made anew for each control plane."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LIFETIME = timedelta(days=30)


class Pki:
    """Files in `folder`: ca.crt, apiserver.crt and .key, service-accounts.key and .pub."""

    def __init__(self, folder: Path) -> None:
        self.ca_file = folder / "ca.crt"
        self.certificate = folder / "apiserver.crt"
        self.key = folder / "apiserver.key"
        self.service_accounts = folder / "service-accounts.key"
        self.service_accounts_public = folder / "service-accounts.pub"

    def create(self) -> None:
        """Write all files; keys are readable by us alone."""
        ca_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
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
        names: list[x509.GeneralName] = [
            x509.DNSName("localhost"),
            x509.DNSName("kubernetes.default.svc"),
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        ]
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
        server = (
            _certificate(subject=_name("kube-apiserver"), issuer=ca_name, key=server_key)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage([x509.OID_SERVER_AUTH]), critical=False)
            .add_extension(issuer_key, critical=False)
            .sign(ca_key, hashes.SHA256())
        )
        self.ca_file.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
        self.certificate.write_bytes(server.public_bytes(serialization.Encoding.PEM))
        _write_key(self.key, server_key)
        tokens_key = ec.generate_private_key(ec.SECP256R1())
        _write_key(self.service_accounts, tokens_key)
        self.service_accounts_public.write_bytes(
            tokens_key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


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
