"""An API server on loopback that knows what a test gives it: objects by path, selectors, refusals."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

Object = dict[str, Any]


class FakeApi:
    """`collections` and `objects` by path; `texts` for what is no JSON; `forbidden` path parts and methods
    answer 403. A merge patch changes metadata and calls `on_patch` with the object; `conflicts` are refused
    first.
    """

    def __init__(self) -> None:
        self.collections: dict[str, list[Object]] = {}
        self.objects: dict[str, Object] = {"/version": {"gitVersion": "v1.34.4"}}
        self.texts: dict[str, str] = {}
        self.forbidden: set[str] = set()
        self.conflicts = 0
        self.patches: list[Object] = []
        self.on_patch: Callable[[Object], None] = lambda _object: None
        self.date: str | None = None
        """The clock that answers tell; None: the real one."""
        self.allowed: Callable[[Object], bool] = lambda _attributes: True
        self.page = 500
        self.seen: list[tuple[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> "FakeApi":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def kubeconfig(self, folder: Path, *, namespace: str = "models") -> Path:
        """A kubeconfig for this server."""
        file = folder / "kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [
                {"name": "c", "cluster": {"server": f"http://127.0.0.1:{self._server.server_address[1]}"}}
            ],
            "users": [{"name": "u", "user": {"token": "t0ken"}}],
            "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u", "namespace": namespace}}],
        }
        file.write_text(yaml.safe_dump(config))
        return file

    def answer(self, method: str, target: str, body: Object) -> tuple[int, str | Object]:
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.seen.append((method, url.path))
        if any(part in url.path for part in self.forbidden) or method in self.forbidden:
            return 403, {"kind": "Status", "message": f"user u may not {method} {url.path}"}
        if method == "POST" and url.path.endswith("/subjectaccessreviews"):
            return 201, {"status": {"allowed": self.allowed(body["spec"]["resourceAttributes"])}}
        if method == "PATCH":
            return self._patch(url.path, body)
        if url.path in self.texts:
            return 200, self.texts[url.path]
        if url.path in self.objects:
            return 200, self.objects[url.path]
        if url.path in self.collections:
            found = [each for each in self.collections[url.path] if selected(each, query)]
            start = int(query.get("continue", "0"))
            rest = start + self.page < len(found)
            metadata = {"continue": str(start + self.page)} if rest else {}
            return 200, {"metadata": metadata, "items": found[start : start + self.page]}
        return 404, {"kind": "Status", "message": f"{url.path} not found"}

    def _patch(self, path: str, body: Object) -> tuple[int, Object]:
        obj = self.objects.get(path)
        if obj is None:
            return 404, {"kind": "Status", "message": f"{path} not found"}
        metadata = obj["metadata"]
        version = int(metadata.get("resourceVersion", "1"))
        if self.conflicts or body["metadata"].get("resourceVersion") not in {None, str(version)}:
            self.conflicts = max(0, self.conflicts - 1)
            metadata["resourceVersion"] = str(version + 1)
            return 409, {"kind": "Status", "message": "the object has been modified"}
        self.patches.append(body)
        annotations = {**metadata.get("annotations", {}), **body["metadata"]["annotations"]}
        metadata["annotations"] = {name: text for name, text in annotations.items() if text is not None}
        metadata["resourceVersion"] = str(version + 1)
        self.on_patch(obj)
        return 200, obj

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else {}
                if self.headers.get("Authorization") != "Bearer t0ken":
                    self._reply(401, "{}")
                    return
                status, answer = api.answer(self.command, self.path, body)
                self._reply(status, answer if isinstance(answer, str) else json.dumps(answer))

            do_POST = do_PATCH = do_GET  # noqa: N815

            def _reply(self, status: int, text: str) -> None:
                content = text.encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def date_time_string(self, timestamp: float | None = None) -> str:
                return api.date or super().date_time_string(timestamp)

            def log_message(self, *_: object) -> None:
                """Nothing: pytest shows what matters."""

        return Handler


def selected(obj: Object, query: dict[str, str]) -> bool:
    labels = (obj.get("metadata") or {}).get("labels") or {}
    for term in filter(None, query.get("labelSelector", "").split(",")):
        name, equals, value = term.partition("=")
        if name not in labels or (equals and labels[name] != value):
            return False
    for term in filter(None, query.get("fieldSelector", "").split(",")):
        path, _, value = term.partition("=")
        found: Any = obj
        for part in path.split("."):
            found = (found or {}).get(part)
        if found != value:
            return False
    return True
