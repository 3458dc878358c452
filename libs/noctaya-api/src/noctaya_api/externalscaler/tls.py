"""Server TLS from three mounted files, taken up again whenever they change.

A certificate issuer replaces the files of a Secret while connections are open. gRPC asks at each handshake
which certificates to use, so the answer is given from files whose identity is compared then. The new set is
used only when
it reads as a whole: a key that does not belong to the certificate, or a file that moved while it was read,
leaves the old set in force.
"""

import logging
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import grpc

from noctaya_api import names
from noctaya_api.externalscaler.certificate import MalformedCertificate, not_after

logger = logging.getLogger(__name__)

_Identity = tuple[tuple[int, int, int], ...]


class TlsUnusable(Exception):
    """The TLS files can't be used as they are; the message says which and why, never what is in them."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: the certificate chain and key of the server, and the CA bundle for client certificates."""

    cert: Path
    key: Path
    client_ca: Path

    @classmethod
    def from_paths(cls, *, cert: str | None, key: str | None, client_ca: str | None) -> "TlsFiles | None":
        """The three paths as settings have them: all empty means plaintext (None).

        Raises:
            ValueError: some but not all are given; the message names the variables that are missing.
        """
        given = {
            names.ENV_SCALER_TLS_CERT_FILE: cert,
            names.ENV_SCALER_TLS_KEY_FILE: key,
            names.ENV_SCALER_TLS_CLIENT_CA_FILE: client_ca,
        }
        missing = [name for name, path in given.items() if not path]
        if len(missing) == len(given):
            return None
        if not (cert and key and client_ca):
            raise ValueError(f"TLS needs all three files or none; not set: {', '.join(missing)}")
        return cls(Path(cert), Path(key), Path(client_ca))


class TlsReloader:
    """The newest usable contents of the files.

    Args:
        files: what to read.
        on_reload: called with True after a new set was taken up, with False once for each set that could not
            be.
    """

    def __init__(self, files: TlsFiles, *, on_reload: Callable[[bool], None] = lambda taken: None) -> None:
        self._files = files
        self._on_reload = on_reload
        self._lock = threading.Lock()
        self._seen: _Identity | None = None
        self._refused: str | None = None

    def expires(self) -> datetime | None:
        """End of validity of the server's certificate as the file has it; None while that can't be read.

        The file and not the last handshake: KEDA may keep one connection for weeks after a rotation.
        """
        try:
            return not_after(self._files.cert.read_bytes())
        except (OSError, MalformedCertificate):
            return None

    def credentials(self) -> grpc.ServerCredentials:
        """Credentials that ask for a verified client certificate and follow the files from now on.

        Raises:
            TlsUnusable: the files can't be used at the start; later such a change is logged and ignored.
        """
        identity, configuration = self._load()
        self._seen = identity
        return grpc.dynamic_ssl_server_credentials(
            configuration,
            self.refreshed,  # type: ignore[arg-type]  # the stubs leave out that None means no change
            require_client_authentication=True,
        )

    def refreshed(self) -> grpc.ServerCertificateConfiguration | None:
        """A new set when the files changed and are usable, else None; gRPC asks at each handshake."""
        with self._lock:
            try:
                if self._identity() == self._seen:
                    return None
                identity, configuration = self._load()
            except TlsUnusable as error:
                self._refuse(str(error))
                return None
            self._seen = identity
            self._refused = None
        logger.info("TLS files changed and were taken up", extra={"certificate": str(self._files.cert)})
        self._on_reload(True)
        return configuration

    def _refuse(self, reason: str) -> None:
        if reason != self._refused:
            self._refused = reason
            logger.error("changed TLS files are not usable, the ones before stay in force: %s", reason)
            self._on_reload(False)

    def _load(self) -> tuple[_Identity, grpc.ServerCertificateConfiguration]:
        before = self._identity()
        try:
            cert, key, client_ca = (path.read_bytes() for path in self._paths())
        except OSError as error:
            raise TlsUnusable(f"{error.filename}: {error.strerror}") from error
        self._verify(client_ca)
        if self._identity() != before:
            raise TlsUnusable("the files changed while they were read")
        return before, grpc.ssl_server_certificate_configuration([(key, cert)], root_certificates=client_ca)

    def _verify(self, client_ca: bytes) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self._files.cert, self._files.key, password=_no_password)
        except (OSError, ValueError) as error:
            raise TlsUnusable(f"{self._files.cert} and {self._files.key}: {error}") from error
        try:
            context.load_verify_locations(cadata=client_ca.decode("ascii", errors="replace"))
        except (OSError, ValueError) as error:
            raise TlsUnusable(f"{self._files.client_ca}: {error}") from error
        if not context.cert_store_stats()["x509_ca"]:
            raise TlsUnusable(f"{self._files.client_ca}: holds no CA certificate")

    def _identity(self) -> _Identity:
        try:
            stats = [path.stat() for path in self._paths()]
        except OSError as error:
            raise TlsUnusable(f"{error.filename}: {error.strerror}") from error
        return tuple((stat.st_ino, stat.st_mtime_ns, stat.st_size) for stat in stats)

    def _paths(self) -> tuple[Path, Path, Path]:
        return self._files.cert, self._files.key, self._files.client_ca


def _no_password() -> str:
    """Stops OpenSSL from asking a terminal for the password of an encrypted key, which is not supported."""
    return ""
