"""A small client of the API server in plain dictionaries, for tests and tools.

It shares nothing with the operator's client: what a test sees must not depend on the code it judges.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx
import yaml

Object = dict[str, Any]

APPLY: Final = "application/apply-patch+yaml"
MERGE: Final = "application/merge-patch+json"
TABLE: Final = "application/json;as=Table;g=meta.k8s.io;v=v1"
WAIT_SECONDS: Final = 60.0
CLUSTER_SCOPED: Final = frozenset(
    {
        "namespaces",
        "nodes",
        "persistentvolumes",
        "customresourcedefinitions",
        "clusterroles",
        "clusterrolebindings",
        "storageclasses",
        "priorityclasses",
        "inferenceruntimes",
        "clustertriggerauthentications",
    }
)


class Refused(Exception):
    """The server's answer was not a success."""

    def __init__(self, status: int, body: Object) -> None:
        super().__init__(f"{status} {body.get('reason', '')}: {body.get('message', '')}")
        self.status = status
        self.body = body

    @property
    def reason(self) -> str:
        """`Invalid`, `Conflict`, `NotFound`, ..."""
        return str(self.body.get("reason", ""))

    @property
    def message(self) -> str:
        """In the server's words."""
        return str(self.body.get("message", ""))

    @property
    def fields(self) -> list[str]:
        """The fields it names."""
        causes = (self.body.get("details") or {}).get("causes") or []
        return [str(cause.get("field", "")) for cause in causes]


class ApiClient:
    """One user's view of one API server; close it.

    Args:
        server: its URL. Plain HTTP is that of a proxy which logs in for us.
        token: of the user; blank behind a proxy.
        ca_file: who signed the server's certificate.
    """

    def __init__(self, server: str, *, token: str = "", ca_file: Path | None = None) -> None:
        headers = {"User-Agent": "noctaya-apiserver-tests"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self.server = server
        self._http = httpx.Client(
            base_url=server,
            headers=headers,
            verify=ssl.create_default_context(cafile=str(ca_file)) if ca_file else False,
            timeout=60.0,
            trust_env=False,
        )

    @classmethod
    def of_kubeconfig(cls, file: Path) -> ApiClient:
        """A client for what a kubeconfig of ours points at."""
        config = yaml.safe_load(file.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        ca_file = Path(cluster["certificate-authority"])
        return cls(cluster["server"], token=user["token"], ca_file=ca_file)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        **query: str,
    ) -> Any:
        """One request; JSON or, where the answer is none, text. Raises Refused, httpx.TransportError."""
        headers = {"Accept": accept}
        content = None
        if body is not None:
            headers["Content-Type"] = content_type
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = self._http.request(method, path, content=content, headers=headers, params=query)
        if not answer.is_success:
            raise _refused(answer)
        return answer.json() if _is_json(answer) else answer.text

    def get(self, path: str, **query: str) -> Any:
        """GET."""
        return self.request("GET", path, **query)

    def find(self, path: str) -> Object | None:
        """GET, None when it is not there."""
        try:
            found: Object = self.get(path)
        except Refused as error:
            if error.status == 404:
                return None
            raise
        return found

    def items(self, path: str, **query: str) -> list[Object]:
        """The items of a list."""
        found: list[Object] = self.get(path, **query)["items"]
        return found

    def create(self, obj: Mapping[str, Any], **query: str) -> Object:
        """POST to the object's collection."""
        found: Object = self.request("POST", path_of(obj, named=False), obj, **query)
        return found

    def replace(self, obj: Mapping[str, Any], *, subresource: str = "", **query: str) -> Object:
        """PUT."""
        found: Object = self.request("PUT", path_of(obj) + _below(subresource), obj, **query)
        return found

    def apply(
        self, obj: Mapping[str, Any], *, manager: str = "tests", subresource: str = "", **query: str
    ) -> Object:
        """Server-side apply, by force."""
        query = {"fieldManager": manager, "force": "true", **query}
        path = path_of(obj) + _below(subresource)
        found: Object = self.request("PATCH", path, obj, content_type=APPLY, **query)
        return found

    def merge(self, path: str, body: Object, *, manager: str = "tests", **query: str) -> Object:
        """JSON merge patch."""
        query = {"fieldManager": manager, **query}
        found: Object = self.request("PATCH", path, body, content_type=MERGE, **query)
        return found

    def delete(self, path: str, *, propagation: str = "Background") -> None:
        """DELETE; an object that is not there is deleted already."""
        try:
            self.request("DELETE", path, {"propagationPolicy": propagation})
        except Refused as error:
            if error.status != 404:
                raise

    def apply_all(self, objects: Iterable[Mapping[str, Any]], **query: str) -> list[Object]:
        """Apply in the order given."""
        return [self.apply(obj, **query) for obj in objects]

    def install(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Apply in the order given and return when the kinds of CRDs among them are served."""
        applied = self.apply_all(objects)
        self.wait_for_crds(
            obj["metadata"]["name"] for obj in applied if obj["kind"] == "CustomResourceDefinition"
        )

    def wait_for_crds(self, names: Iterable[str], *, within: float = WAIT_SECONDS) -> None:
        """Return when the API serves the kinds of these CRDs."""
        for name in names:
            path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
            wait_for(partial(self._served, path), within=within, what=f"CRD {name}")

    def _served(self, path: str) -> bool:
        crd = self.find(path)
        if crd is None or not _established(crd):
            return False
        group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
        served = (f"/apis/{group}/{version['name']}/{plural}" for version in crd["spec"]["versions"])
        try:
            return all(self.find(collection) is not None for collection in served)
        except Refused as error:
            if error.status == 429:  # the storage of a new kind is being made
                return False
            raise

    @contextmanager
    def watch(self, path: str, *, seconds: int = 600, **query: str) -> Iterator[Iterator[Object]]:
        """Events of a watch, until it ends."""
        params = {"watch": "true", "timeoutSeconds": str(seconds), **query}
        with self._http.stream("GET", path, params=params, timeout=seconds + 30) as answer:
            if not answer.is_success:
                answer.read()
                raise _refused(answer)
            yield (json.loads(line) for line in answer.iter_lines() if line)


def path_of(obj: Mapping[str, Any], *, named: bool = True) -> str:
    """URL path of an object or, not `named`, of its collection."""
    version, metadata = str(obj["apiVersion"]), obj["metadata"]
    plural = plural_of(str(obj["kind"]))
    parts = ["api" if "/" not in version else "apis", version]
    if plural not in CLUSTER_SCOPED:
        parts += ["namespaces", metadata.get("namespace") or "default"]
    parts.append(plural)
    if named:
        parts.append(metadata["name"])
    return "/" + "/".join(parts)


def plural_of(kind: str) -> str:
    """Good enough for the kinds met here."""
    lower = kind.lower()
    if lower.endswith(("s", "x", "ch")):
        return lower + "es"
    return lower[:-1] + "ies" if lower.endswith("y") else lower + "s"


def load_objects(*files: Path) -> list[Object]:
    """Every document of YAML files."""
    documents = (each for file in files for each in yaml.safe_load_all(file.read_text()))
    return [document for document in documents if document is not None]


T = TypeVar("T")


def wait_for(look: Callable[[], T], *, within: float = WAIT_SECONDS, what: str = "", every: float = 0.1) -> T:
    """The first true value that `look` gives. AssertionError names what was waited for and what was seen."""
    end = time.monotonic() + within
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() >= end:
            raise AssertionError(f"not within {within:g} s: {what or look}")
        time.sleep(every)


def _is_json(answer: httpx.Response) -> bool:
    return "json" in answer.headers.get("content-type", "")


def _refused(answer: httpx.Response) -> Refused:
    return Refused(answer.status_code, answer.json() if _is_json(answer) else {"message": answer.text})


def _established(crd: Object) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _below(subresource: str) -> str:
    return f"/{subresource}" if subresource else ""
