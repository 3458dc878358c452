"""The API server as the user's kubeconfig gives it: plain objects in and out, errors that people can act on.

Only what `kubectl get` could do is asked for. A right that is missing is an answer like any other
(`NotAllowed`), so that a command can leave out one column instead of failing as a whole.
"""

import json
import os
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote

from noctaya_api import names

from noctaya_cli.cluster.credential import remark
from noctaya_cli.cluster.unreachable import short, why

Object = dict[str, Any]

TIMEOUT: Final = 10.0
"""Seconds for one request; what kubectl users wait before they look for another cause."""
PAGE: Final = 500
"""Objects a list request, as kubectl asks for."""
LARGEST: Final = 64 << 20
"""Bytes of one answer: a page of objects of 130 kB each, a hundred times what they have."""
LARGEST_TEXT: Final = 4 << 20
"""Bytes of an answer that comes from a Pod: its metrics are some 30 kB, and whoever runs the Pod decides."""
LONGEST: Final = 60.0
"""Seconds one answer may take as a whole, however steadily it drips."""
CHUNK: Final = 65_536
TOLD: Final = 600
"""Characters of what a server says of a refusal; a message may hold a million lines."""

CLOCK_TOLERANCE: Final = timedelta(seconds=5)
"""How far a clock may be off without being corrected: the header tells whole seconds, and takes its time."""

_FORBIDDEN: Final = re.compile(
    r'User "(?P<user>[^"]+)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group '
    r'"(?P<group>[^"]*)" ?(?P<where>at the cluster scope|in the namespace "[^"]*")?'
)
SERVICES: Final = f"/apis/{names.API_VERSION}"
MERGE: Final = "application/merge-patch+json"


class ClusterError(Exception):
    """The cluster can't be reached or answered with something that can't be used."""


class NotAllowed(ClusterError):
    """The user has no right to this."""


class NotThere(ClusterError):
    """The object, or its kind, does not exist."""


class Outdated(ClusterError):
    """Somebody else changed the object first."""


class Reader(Protocol):
    """What commands ask of a cluster."""

    def get(self, path: str) -> Object:
        """One object, or any JSON answer."""

    def items(self, path: str, *, labels: str = "", fields: str = "") -> list[Object]:
        """All objects of a collection."""

    def text(self, path: str) -> str:
        """An answer that is not JSON."""


class Cluster:
    """One API server.

    Args:
        client: a `kubernetes.client.ApiClient`.
        namespace: the one of the kubeconfig's context.
    """

    def __init__(self, client: Any, *, namespace: str, name: str) -> None:
        self._client = client
        self._ahead = timedelta()
        self.namespace = namespace
        self.name = name

    def now(self) -> datetime:
        """The time by the cluster's clock, as of its last answer; that of this machine before there was one.

        A time that is written for others to act on must not depend on the clock of a laptop.
        """
        return datetime.now(UTC) + self._ahead

    def get(self, path: str) -> Object:
        """One object, or any JSON answer. `NotThere`, `NotAllowed`, `ClusterError`."""
        answer = self._json("GET", path)
        if not isinstance(answer, dict):
            raise ClusterError(f"{path}: not an object")
        return answer

    def items(self, path: str, *, labels: str = "", fields: str = "") -> list[Object]:
        """All objects of a collection, page by page."""
        query: dict[str, str] = {"limit": str(PAGE)}
        if labels:
            query["labelSelector"] = labels
        if fields:
            query["fieldSelector"] = fields
        found: list[Object] = []
        while True:
            answer = self._json("GET", path, query=query)
            page = answer.get("items") if isinstance(answer, dict) else None
            if not isinstance(page, list):
                raise ClusterError(f"{path}: not a list")
            found += [item for item in page if isinstance(item, dict)]
            if not (more := (answer.get("metadata") or {}).get("continue")):
                return found
            query["continue"] = more

    def text(self, path: str) -> str:
        """An answer that is not JSON: metrics, through the API server's proxy."""
        return self._request("GET", path, largest=LARGEST_TEXT).decode("utf-8", "replace")

    def merge(self, path: str, change: Mapping[str, Any]) -> Object:
        """Change an object by a merge patch and return it."""
        answer = self._json("PATCH", path, body=change, content_type=MERGE)
        return answer if isinstance(answer, dict) else {}

    def create(self, path: str, obj: Mapping[str, Any]) -> Object:
        """Post an object, such as a review, and return the answer."""
        answer = self._json("POST", path, body=obj, content_type="application/json")
        return answer if isinstance(answer, dict) else {}

    def _json(self, method: str, path: str, **options: Any) -> Any:
        content = self._request(method, path, **options)
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise ClusterError(f"{self.name}: {path} gave something that is not JSON") from error

    def _request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "",
        largest: int = LARGEST,
    ) -> bytes:
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - comes with the Kubernetes client

        headers = {"Accept": "application/json, text/plain, */*"}
        if content_type:
            headers["Content-Type"] = content_type
        try:
            call = self._client.param_serialize(
                method,
                path,
                query_params=list((query or {}).items()),
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
            )
            answer = self._client.call_api(*call, _request_timeout=TIMEOUT)
            content = self._read(answer, path, largest)
        except (HTTPError, OSError) as error:
            where = str(self._client.configuration.host)
            raise ClusterError(f"{self.name}: {why(error, server=where, seconds=TIMEOUT)}") from error
        except ValueError:
            # The error would tell the credential.
            raise ClusterError(
                f"{self.name}: no request can be sent: the server's URL or the credential of the kubeconfig "
                "holds a character that HTTP does not allow"
            ) from None
        self._ahead = _ahead(answer.headers.get("Date"), known=self._ahead)
        if 200 <= answer.status < 300:
            return content
        if answer.status == 401:
            shown = remark(self._client.configuration.cert_file, now=self.now())
            raise ClusterError(f"{self.name}: the credential of the kubeconfig is not accepted; {shown}")
        raise _refusal(answer.status, content, method=method, path=path, cluster=self.name)

    def _read(self, answer: Any, path: str, largest: int) -> bytes:
        """The content of an answer; ClusterError for one that has no end."""
        response, content, end = answer.response, bytearray(), time.monotonic() + LONGEST
        while chunk := response.read1(CHUNK):
            content += chunk
            if len(content) > largest or time.monotonic() > end:
                response.close()
                bound = f"is larger than {largest >> 20} MiB"
                if len(content) <= largest:
                    bound = f"took longer than {LONGEST:g} s"
                raise ClusterError(f"{self.name}: the answer to {path} {bound}")
        response.release_conn()
        return bytes(content)


def connect(kubeconfig: Path | None, context: str | None) -> Cluster:
    """The cluster of a kubeconfig; nothing is asked of it yet.

    Args:
        kubeconfig: a file; None for `KUBECONFIG` or `~/.kube/config`.
        context: a context of it; None for the current one.

    Raises:
        ClusterError: the Kubernetes client is not installed, or the configuration can't be used.
    """
    try:
        from kubernetes import config  # noqa: PLC0415 - 0.7 s of CPU that `noctaya run` does without
    except ImportError as error:
        raise ClusterError(
            "commands for clusters need the Kubernetes client: pip install 'noctaya-cli[cluster]'"
        ) from error
    loader: Any = config  # its functions have no types
    file = str(kubeconfig) if kubeconfig else None
    try:
        contexts, active = loader.list_kube_config_contexts(config_file=file)
        chosen = _context(contexts, context or active["name"])
        client = loader.new_client_from_config(config_file=file, context=chosen["name"], persist_config=False)
        _check_server(str(client.configuration.host))
    except ClusterError:
        raise
    except Exception as error:  # the loader raises whatever the YAML or a plugin gives it
        if not (looked := _existing(kubeconfig))[1]:
            raise ClusterError(
                f"there is no kubeconfig at {looked[0]}: name one with --kubeconfig or in KUBECONFIG"
            ) from error
        raise ClusterError(f"the kubeconfig can't be used: {short(error)}") from error
    client.configuration.retries = 0
    client.rest_client.pool_manager.connection_pool_kw["retries"] = 0
    inside = chosen.get("context")
    namespace = inside.get("namespace") if isinstance(inside, Mapping) else None
    return Cluster(client, namespace=str(namespace or "default"), name=str(chosen["name"]))


def _check_server(url: str) -> None:
    """Raises ClusterError for what no request can be sent to."""
    if not url.lower().startswith(("https://", "http://")):
        raise ClusterError(f"the kubeconfig can't be used: its server {url[:TOLD]!r} is not an https:// URL")


def _existing(kubeconfig: Path | None) -> tuple[str, bool]:
    """Where a kubeconfig was looked for, and whether there is any."""
    named = str(kubeconfig) if kubeconfig else os.environ.get("KUBECONFIG", "")
    paths = [part for part in named.split(os.pathsep) if part] or ["~/.kube/config"]
    return ", ".join(paths), any(Path(part).expanduser().exists() for part in paths)


def _context(contexts: list[Object], name: str) -> Object:
    found = next((each for each in contexts if each["name"] == name), None)
    if found is None:
        known = ", ".join(sorted(str(each["name"]) for each in contexts))
        raise ClusterError(f"there is no context {name!r} in the kubeconfig; there is {known}")
    return found


def service_path(namespace: str, name: str) -> str:
    """Where an LLMService is."""
    return f"{SERVICES}/namespaces/{quote(namespace, safe='')}/llmservices/{quote(name, safe='')}"


def services_path(namespace: str | None) -> str:
    """Where the LLMServices are; of all namespaces with None."""
    inside = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    return f"{SERVICES}{inside}/llmservices"


def core_path(kind: str, namespace: str | None = None, *, group: str = "") -> str:
    """A collection of Kubernetes' own API; `group` is `apps/v1` and the like, empty for the core API."""
    root = f"/apis/{group}" if group else "/api/v1"
    return f"{root}/namespaces/{quote(namespace, safe='')}/{kind}" if namespace else f"{root}/{kind}"


def _refusal(status: int, content: bytes, *, method: str, path: str, cluster: str) -> ClusterError:
    try:
        said = str(json.loads(content).get("message") or "")
    except (ValueError, AttributeError, RecursionError):
        said = content[:TOLD].decode("utf-8", "replace")
    said = " ".join(said[: 2 * TOLD].split())[:TOLD]
    if status == 404:
        return NotThere(said or f"{path} does not exist")
    if status == 403:
        return NotAllowed(_right(said) or f"{method} {path} is not allowed")
    if status == 409:
        return Outdated(said or f"{path} was changed meanwhile")
    return ClusterError(f"{cluster}: {method} {path}: {status} {said}".rstrip())


def _right(said: str) -> str:
    """The right that is missing, in fewer words than the API server has for it."""
    found = _FORBIDDEN.search(said)
    if found is None:
        return said
    group = f".{found['group']}" if found["group"] else ""
    return f"{found['user']} may not {found['verb']} {found['resource']}{group} {found['where']}".rstrip()


def _ahead(date: str | None, *, known: timedelta) -> timedelta:
    """How far the server's clock is ahead of ours; less than its whole seconds can tell counts as nothing."""
    try:
        ahead = parsedate_to_datetime(date or "") - datetime.now(UTC)
    except (ValueError, TypeError, OverflowError):  # no time, or one of no zone
        return known
    return ahead if abs(ahead) > CLOCK_TOLERANCE else timedelta()
