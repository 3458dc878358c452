"""Control over HTTP, for tests whose hub runs in a cluster: repositories, buckets, faults, the request log.

`GET /_hub/healthz` answers 200. `PUT /_hub/repositories/<org>/<name>`, `PUT /_hub/artifacts/<name>`,
`PUT /_hub/buckets/<name>`, `POST /_hub/faults`, `DELETE /_hub/faults`, `GET /_hub/requests` and
`DELETE /_hub/requests` take and give the JSON that the README describes.
"""

import base64
import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from noctaya_model_hub.content import Content, Inline, Pattern, sha256
from noctaya_model_hub.exchange import Reply, Request, json_reply
from noctaya_model_hub.faults import Effect, Match
from noctaya_model_hub.repository import Hub, Repository


class Control:
    """Answers requests below `/_hub/`; a malformed one is a 400 that says what is wrong."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def answer(self, request: Request) -> Reply | None:
        """The reply, or None when the path is another dialect's."""
        if request.segments[0] != "_hub":
            return None
        try:
            return json_reply("control", self._do(request))
        except (ValueError, KeyError, TypeError) as error:
            text = f"{request.method} {request.path}: {type(error).__name__}: {error}"
            return json_reply("control", {"error": text}, status=400)

    def _do(self, request: Request) -> object:
        body = json.loads(request.body or b"{}")
        hub = self._hub
        match (request.method, request.segments[1:]):
            case "GET", ["healthz"]:
                return {"repositories": sorted(hub.repositories), "buckets": sorted(hub.buckets)}
            case "PUT", ["repositories", *name] if name:
                return _described(put_repository(hub, "/".join(name), body))
            case "PUT", ["buckets", name]:
                hub.s3_keys |= body.get("keys", {})
                return sorted(hub.bucket(name, _files(body["objects"])))
            case "PUT", ["artifacts", *name] if name:
                files, tag = _files(body["files"]), str(body.get("tag", "latest"))
                digest = hub.artifact("/".join(name), files, tag=tag, users=body.get("users"))
                return {"digest": digest}
            case "POST", ["faults"]:
                hub.faults.add(_match(body["on"]), _effect(body["effect"]))
                return {"faults": len(hub.faults.active)}
            case "DELETE", ["faults"]:
                hub.faults.clear()
                return {}
            case "GET", ["requests"]:
                return [dataclasses.asdict(seen) for seen in hub.requests.seen]
            case "DELETE", ["requests"]:
                hub.requests.clear()
                return {}
        raise ValueError("no such control")


def put_repository(hub: Hub, name: str, body: Mapping[str, Any]) -> Repository:
    """Create a repository, or add a commit to an existing one when `body` says `"commit": true`.

    Raises:
        ValueError, KeyError, TypeError: the description is malformed.
    """
    files = _files(body["files"])
    existing = hub.repositories.get(name)
    if body.get("commit") and existing is not None:
        existing.commit(files)
        return existing
    return hub.create(
        name,
        files,
        gated=bool(body.get("gated")),
        private=bool(body.get("private")),
        tokens=body.get("tokens", ()),
    )


def _described(repository: Repository) -> dict[str, object]:
    sha = repository.refs["main"]
    files = repository.commits[sha].files
    return {"sha": sha, "files": {path: sha256(content) for path, content in files.items()}}


def _files(described: Mapping[str, Any]) -> dict[str, Content]:
    return {path: _content(value) for path, value in described.items()}


def _content(value: Any) -> Content:
    if isinstance(value, str):
        return Inline(value.encode())
    if "base64" in value:
        return Inline(base64.b64decode(value["base64"], validate=True))
    return Pattern(size=int(value["size"]), seed=int(value.get("seed", 0)))


def _match(value: Mapping[str, Any]) -> Match:
    return Match(**{**value, "calls": frozenset(value.get("calls", ()))})


def _effect(value: Mapping[str, Any]) -> Effect:
    if "then" in value:
        raise ValueError("an effect over HTTP can't call code")
    headers = tuple((str(name), str(text)) for name, text in value.get("headers", {}).items())
    return Effect(**{**value, "headers": headers, "body": str(value.get("body", "")).encode()})
