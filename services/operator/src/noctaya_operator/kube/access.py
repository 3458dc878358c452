"""Where the API server is and how to prove who we are: kubeconfig, service account, plain address.

Parsing, exec plugins and TLS settings are the official client's. Its refresh logic is not used: it keeps a
token for as long as the wall clock says, reads token files once and hides the failure of an exec plugin. Here
a token file is read again when it changes, and a kubeconfig is loaded anew - plugin run, files read - when
the server answers 401.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import load_kube_config
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.incluster_config import (
    SERVICE_CERT_FILENAME,
    SERVICE_HOST_ENV_NAME,
    SERVICE_TOKEN_FILENAME,
    InClusterConfigLoader,
)

log = logging.getLogger(__name__)

# The loaders have no types.
_load: Any = load_kube_config
_in_cluster: Any = InClusterConfigLoader

DEFAULT_KUBECONFIG = "~/.kube/config"
"""Read last, as kubectl does."""


class AccessError(Exception):
    """There is no usable way to an API server; the message names the file or variable at fault."""


class Access(Protocol):
    """An API server's address with a credential that can be renewed."""

    @property
    def configuration(self) -> Configuration:
        """Address, proxy and TLS settings; a new object after a renewal changed them."""

    def authorization(self) -> str | None:
        """Value for the Authorization header now, None when TLS alone proves identity."""

    async def renew(self) -> bool:
        """Called after a 401: get a fresh credential. False when there is no fresher one."""


class StaticAccess:
    """A fixed address and an optional bearer token, for tests and tools on loopback."""

    def __init__(self, server: str, *, token: str | None = None, ca_file: Path | None = None) -> None:
        self._token = token
        self.configuration = Configuration(host=server, ssl_ca_cert=str(ca_file) if ca_file else None)

    def authorization(self) -> str | None:
        """The token as a bearer credential."""
        return f"Bearer {self._token}" if self._token else None

    async def renew(self) -> bool:
        """Never: the token is fixed."""
        return False


class InClusterAccess:
    """The service account of the pod this process runs in; the kubelet rotates its token file.

    Raises:
        AccessError: not in a pod, or its files are unreadable.
    """

    def __init__(
        self,
        *,
        token_file: Path = Path(SERVICE_TOKEN_FILENAME),
        ca_file: Path = Path(SERVICE_CERT_FILENAME),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        loader: Any = _in_cluster(
            token_filename=str(token_file),
            cert_filename=str(ca_file),
            try_refresh_token=False,
            environ=os.environ if environ is None else environ,
        )
        self.configuration = Configuration()
        try:
            loader.load_and_set(self.configuration)
        except (ConfigException, OSError) as error:
            raise AccessError(f"no service account to use: {error}") from error
        self._token_file = token_file
        self._identity: tuple[int, int, int] | None = None
        self._token = ""
        self.authorization()

    def authorization(self) -> str | None:
        """The current token; while the file can't be read (it is being swapped) the one read last."""
        try:
            stat = self._token_file.stat()
            identity = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if identity != self._identity:
                self._token = self._token_file.read_text().strip() or self._token
                self._identity = identity
        except OSError as error:
            log.warning("service account token can't be read, using the last one: %s", error)
        return f"Bearer {self._token}"

    async def renew(self) -> bool:
        """True when the file holds another token than the one refused."""
        refused, self._identity = self._token, None
        self.authorization()
        return self._token != refused


class KubeconfigAccess:
    """One context of a kubeconfig; several files may be joined by `:` as in `$KUBECONFIG`. Made by `load`."""

    def __init__(self, files: str, *, context: str | None) -> None:
        self._files = files
        self._context = context
        self.configuration = Configuration()

    @classmethod
    async def load(cls, files: str, *, context: str | None = None) -> KubeconfigAccess:
        """Read the files and run the exec plugin if there is one.

        Raises:
            AccessError: a file is missing or malformed, the context is unknown, or the plugin gave no
            credential.
        """
        access = cls(files, context=context)
        access.configuration = await access._read()
        return access

    def authorization(self) -> str | None:
        """Token or basic credential of the user; None for client certificates."""
        value = self.configuration.api_key.get("BearerToken")
        return str(value).strip() if value else None

    async def renew(self) -> bool:
        """Load the files again; keeps the old credential when that fails."""
        try:
            fresh = await self._read()
        except AccessError as error:
            log.warning("credential can't be renewed: %s", error)
            return False
        if fresh.cert_file or _connection_settings(fresh) != _connection_settings(self.configuration):
            self.configuration = fresh
        else:
            self.configuration.api_key = fresh.api_key
        return True

    async def _read(self) -> Configuration:
        if not _exists(self._files):
            raise AccessError(f"kubeconfig {self._files}: no such file")
        configuration = Configuration()
        try:
            loader: Any = await _load(
                self._files, context=self._context, client_configuration=configuration, persist_config=False
            )
        except Exception as error:  # the loader raises whatever a malformed file leads to
            raise AccessError(f"kubeconfig {self._files}: {error}") from error
        user = loader._user
        exec_wanted = user is not None and "exec" in user
        if exec_wanted and not (configuration.api_key.get("BearerToken") or configuration.cert_file):
            raise AccessError(f"kubeconfig {self._files}: the exec plugin gave no credential")
        return configuration


def _connection_settings(configuration: Configuration) -> tuple[object, ...]:
    """What connections are made with, besides client certificates: these may change inside their files."""
    return (
        configuration.host,
        configuration.ssl_ca_cert,
        configuration.verify_ssl,
        configuration.tls_server_name,
        configuration.proxy,
        configuration.cert_file,
    )


def _exists(files: str) -> bool:
    return any(Path(name).expanduser().is_file() for name in files.split(os.pathsep) if name)


async def find_access(
    kubeconfig: str | os.PathLike[str] | None = None,
    *,
    context: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Access:
    """The first of: the given kubeconfig, `$KUBECONFIG`, the pod's service account, `~/.kube/config`.

    Raises:
        AccessError: none is there, or the first that is there can't be used.
    """
    environ = os.environ if environ is None else environ
    files = os.fspath(kubeconfig) if kubeconfig else environ.get("KUBECONFIG", "")
    if files:
        return await KubeconfigAccess.load(files, context=context)
    if environ.get(SERVICE_HOST_ENV_NAME):
        return InClusterAccess(environ=environ)
    if _exists(DEFAULT_KUBECONFIG):
        return await KubeconfigAccess.load(DEFAULT_KUBECONFIG, context=context)
    raise AccessError(
        "no API server: give a kubeconfig, set KUBECONFIG, or run in a pod with a service account"
    )
