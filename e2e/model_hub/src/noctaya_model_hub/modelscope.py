"""The part of ModelScope's HTTP interface that downloads use.

Answers are wrapped in `{"Code", "Data", "Message", "Success"}`. A listing has no pages and silently ends at a
limit. Files are named with a query, small ones are answered at once and large ones with a redirect.
"""

from collections.abc import Callable

from noctaya_model_hub.content import git_sha1, sha256
from noctaya_model_hub.exchange import Reply, Request, file_reply, json_reply
from noctaya_model_hub.repository import Commit, Hub, Repository, is_large

_NOT_FOUND = 10010205001
_NO_ACCESS = 10010203003
_SECONDS = 1767225600


class ModelScope:
    """Answers requests below `/api/v1/models/`.

    Args:
        hub: what is served.
        cdn: gives the base URL of the content network, as seen by the client that sent this request.
    """

    def __init__(self, hub: Hub, cdn: Callable[[Request], str]) -> None:
        self._hub = hub
        self._cdn = cdn

    def answer(self, request: Request) -> Reply | None:
        """The reply, or None when the path is none of ModelScope's."""
        match request.segments:
            case ["api", "v1", "repos", "internalAccelerationInfo"]:
                return _wrapped("ms-info", {"InternalRegionQueryAddress": ""})
            case ["api", "v1", "models", owner, name, *rest]:
                return self._model(f"{owner}/{name}", "/".join(rest), request)
        return None

    def _model(self, name: str, operation: str, request: Request) -> Reply:
        route = {"": "ms-info", "revisions": "ms-revisions", "repo/files": "ms-files"}.get(
            operation, "ms-file"
        )
        repository = self._hub.repositories.get(name)
        token = request.bearer or _session(request)
        if token and token not in self._hub.tokens:
            return _failed(route, 401, _NO_ACCESS, "the access token is invalid")
        if repository is None or (repository.private and token not in repository.allowed):
            return _failed(route, 404, _NOT_FOUND, f"record not found: {name}")
        if operation == "":
            owner, _, short = name.partition("/")
            return _wrapped(route, {"Id": 1, "Name": short, "Path": owner})
        if operation == "revisions":
            return _wrapped(route, {"RevisionMap": _revisions(repository)})
        revision = request.query.get("Revision") or "master"
        commit = repository.find(revision)
        if commit is None:
            return _failed(route, 404, _NOT_FOUND, f"revision {revision} not found")
        if operation == "repo/files":
            return self._files(commit, request)
        if repository.gated and token not in repository.allowed:
            return _failed(route, 403, _NO_ACCESS, f"no access to {name}")
        return self._file(name, commit, request)

    def _files(self, commit: Commit, request: Request) -> Reply:
        root = request.query.get("Root", "").strip("/")
        recursive = request.query.get("Recursive", "").lower() == "true"
        entries = _entries(commit, root, recursive=recursive)[: self._hub.truncate_at]
        if root and not entries:
            return _failed("ms-files", 404, _NOT_FOUND, f"{root} not found")
        return _wrapped(
            "ms-files", {"Files": entries, "LatestCommitter": {"Revision": commit.sha}}, path=root
        )

    def _file(self, name: str, commit: Commit, request: Request) -> Reply:
        path = request.query.get("FilePath", "")
        content = commit.files.get(path)
        if content is None:
            return _failed("ms-file", 404, _NOT_FOUND, f"file {path} not found", path=path)
        digest = sha256(content)
        linked = {"X-Linked-ETag": f'"{digest}"'}
        if is_large(path, content):
            target = f"{self._cdn(request)}/{name}/{digest}?Expires=1900000000&Signature={digest[:16]}"
            return Reply(route="ms-file", path=path, status=302, headers={**linked, "Location": target})
        return file_reply("ms-file", path, content, request, etag=digest, headers=linked)


def _session(request: Request) -> str:
    for cookie in request.headers.get("cookie", "").split(";"):
        name, _, value = cookie.strip().partition("=")
        if name == "m_session_id":
            return value
    return ""


def _wrapped(route: str, data: object, *, path: str = "") -> Reply:
    return json_reply(route, {"Code": 200, "Data": data, "Message": "success", "Success": True}, path=path)


def _failed(route: str, status: int, code: int, text: str, *, path: str = "") -> Reply:
    body = {"Code": code, "Data": None, "Message": text, "RequestId": "0", "Success": False}
    return json_reply(route, body, status=status, path=path)


def _revisions(repository: Repository) -> dict[str, object]:
    def shown(name: str) -> dict[str, object]:
        return {"Revision": name, "CreatedAt": _SECONDS, "IsDefault": name == "master"}

    branches = [name for name in repository.refs if name not in repository.tags and name != "main"]
    return {"Branches": [shown(name) for name in branches], "Tags": [shown(tag) for tag in repository.tags]}


def _entries(commit: Commit, root: str, *, recursive: bool) -> list[dict[str, object]]:
    prefix = f"{root}/" if root else ""
    shown: dict[str, dict[str, object]] = {}
    for path, content in sorted(commit.files.items()):
        if not path.startswith(prefix):
            continue
        parts = path.removeprefix(prefix).split("/")
        for depth in range(1, len(parts) if recursive else min(2, len(parts))):
            folder = prefix + "/".join(parts[:depth])
            shown[folder] = _entry(commit, folder, type="tree", size=0, sha256="", identifier=commit.sha)
        if recursive or len(parts) == 1:
            shown[path] = _entry(
                commit,
                path,
                type="blob",
                size=content.size,
                sha256=sha256(content),
                identifier=git_sha1(content),
            ) | {"IsLFS": is_large(path, content)}
    return list(shown.values())


def _entry(
    commit: Commit, path: str, *, type: str, size: int, sha256: str, identifier: str
) -> dict[str, object]:
    return {
        "Name": path.rsplit("/", 1)[-1],
        "Path": path,
        "Type": type,
        "Size": size,
        "Sha256": sha256,
        "Id": identifier,
        "Revision": commit.sha,
        "CommittedDate": _SECONDS,
        "IsLFS": False,
    }
