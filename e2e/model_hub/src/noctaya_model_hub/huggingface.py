"""The part of Hugging Face's HTTP interface that downloads use.

Shapes, statuses and headers are those the public service gives and `huggingface_hub` reads: the revision is
resolved by the repository's info, files are listed as a paged tree, and `/resolve/` answers with the commit
and either the file, a relative redirect (small files) or a redirect to another host (large ones).
"""

import urllib.parse
from collections.abc import Callable

from noctaya_model_hub.content import Content, git_sha1, sha256
from noctaya_model_hub.exchange import Reply, Request, file_reply, json_reply, text_reply
from noctaya_model_hub.repository import Commit, Hub, Repository, is_large

_POINTER_SIZE = 134
_WHEN = "2026-01-01T00:00:00.000Z"


class HuggingFace:
    """Answers requests to the hub itself.

    Args:
        hub: what is served.
        cdn: gives the base URL of the content network, as seen by the client that sent this request.
    """

    def __init__(self, hub: Hub, cdn: Callable[[Request], str]) -> None:
        self._hub = hub
        self._cdn = cdn

    def answer(self, request: Request) -> Reply | None:
        """The reply, or None when the path is none of Hugging Face's."""
        match request.segments:
            case ["api", "models", *rest]:
                return self._api(rest, request)
            case ["api", "resolve-cache", "models", *rest]:
                return self._cached(rest, request)
            case ["api", "whoami-v2"]:
                return self._whoami(request)
            case segments if "resolve" in segments[1:3]:
                cut = segments.index("resolve", 1)
                return self._resolve("/".join(segments[:cut]), segments[cut + 1 :], request)
        return None

    def _api(self, rest: list[str], request: Request) -> Reply:
        for length in (2, 1):
            tail = rest[length:]
            if not tail or tail[0] in {"revision", "tree", "refs"}:
                name = "/".join(rest[:length])
                break
        else:
            return text_reply("info", 404, "no such interface")
        route = "tree" if tail[:1] == ["tree"] else "info"
        repository = self._hub.repositories.get(name)
        refused = self._refusal(route, repository, request, needs_access=False)
        if refused is not None or repository is None:
            return refused or _missing(route, request)
        if tail[:1] == ["refs"]:
            return json_reply("info", _refs(repository))
        revision = tail[1] if len(tail) > 1 else "main"
        commit = repository.find(revision)
        if commit is None:
            return _error(route, 404, "RevisionNotFound", f"Invalid rev id: {revision}")
        if route == "tree":
            return self._tree(commit, "/".join(tail[2:]), request)
        return json_reply("info", _info(repository, commit, blobs=bool(request.query.get("blobs"))))

    def _tree(self, commit: Commit, root: str, request: Request) -> Reply:
        recursive = request.query.get("recursive", "").lower() in {"1", "true"}
        entries = _entries(commit, root, recursive=recursive)
        if root and not entries:
            return _error("tree", 404, "EntryNotFound", f"{root} does not exist")
        offset = int(request.query.get("cursor", "0"))
        page = entries[offset : offset + self._hub.page_size]
        headers = {}
        if offset + len(page) < len(entries):
            query = {**request.query, "cursor": str(offset + len(page))}
            target = f"{request.base}{request.path}?{urllib.parse.urlencode(query)}"
            headers["Link"] = f'<{target}>; rel="next"'
        return json_reply("tree", page, path=root, headers=headers)

    def _resolve(self, name: str, rest: list[str], request: Request) -> Reply:
        path = "/".join(rest[1:])
        repository = self._hub.repositories.get(name)
        refused = self._refusal("resolve", repository, request, needs_access=True)
        if refused is not None or repository is None or not rest:
            return refused or _missing("resolve", request)
        commit = repository.find(rest[0])
        if commit is None:
            return _error("resolve", 404, "RevisionNotFound", f"Invalid rev id: {rest[0]}", path=path)
        named = {"X-Repo-Commit": commit.sha}
        content = commit.files.get(path)
        if content is None:
            return _error("resolve", 404, "EntryNotFound", "Entry not found", path=path, headers=named)
        if is_large(path, content):
            digest = sha256(content)
            signed = f"{self._cdn(request)}/{name}/{digest}?Expires=1900000000&Signature={digest[:16]}"
            return _redirect(302, signed, path, content, etag=digest, headers=named)
        if self._hub.small_redirects:
            quoted = urllib.parse.quote(path, safe="")
            target = f"/api/resolve-cache/models/{name}/{commit.sha}/{quoted}"
            return _redirect(307, target, path, content, etag=git_sha1(content), headers=named)
        return file_reply("resolve", path, content, request, etag=git_sha1(content), headers=named)

    def _cached(self, rest: list[str], request: Request) -> Reply:
        sha, path = rest[-2:]
        repository = self._hub.repositories.get("/".join(rest[:-2]))
        refused = self._refusal("cache", repository, request, needs_access=True)
        commit = repository.find(sha) if repository is not None else None
        if refused is not None or commit is None or path not in commit.files:
            return refused or _error("cache", 404, "EntryNotFound", "Entry not found", path=path)
        content = commit.files[path]
        named = {"X-Repo-Commit": sha}
        return file_reply("cache", path, content, request, etag=git_sha1(content), headers=named)

    def _refusal(
        self, route: str, repository: Repository | None, request: Request, *, needs_access: bool
    ) -> Reply | None:
        """Why this request may not see the repository; None when it may."""
        token = request.bearer
        if token and token not in self._hub.tokens:
            return _error(route, 401, "", "Invalid credentials in Authorization header")
        hidden = repository is None or (repository.private and token not in repository.allowed)
        if hidden:
            return _missing(route, request)
        if repository is not None and repository.gated and needs_access and token not in repository.allowed:
            text = f"Access to model {repository.name} is restricted."
            return _error(route, 403 if token else 401, "GatedRepo", text)
        return None

    def _whoami(self, request: Request) -> Reply:
        if request.bearer in self._hub.tokens:
            return json_reply("info", {"type": "user", "name": "somebody", "orgs": []})
        return _error("info", 401, "", "Invalid credentials in Authorization header")


class Cdn:
    """Answers requests to the content network: signed paths, no credentials."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def answer(self, request: Request) -> Reply:
        """The file; 400 when a token came along, 403 when the signature is missing."""
        *name, digest = request.segments
        repository = self._hub.repositories.get("/".join(name))
        found = repository.content_with(digest) if repository is not None else None
        if found is None:
            return text_reply("cdn", 404, "<Error><Code>NoSuchKey</Code></Error>")
        path, content = found
        if "authorization" in request.headers:
            return text_reply("cdn", 400, "Only one auth mechanism allowed", path=path)
        if request.query.get("Signature") != digest[:16]:
            return text_reply("cdn", 403, "<Error><Code>AccessDenied</Code></Error>", path=path)
        return file_reply("cdn", path, content, request, etag=digest)


def _redirect(
    status: int, target: str, path: str, content: Content, *, etag: str, headers: dict[str, str]
) -> Reply:
    shown = {
        **headers,
        "Location": target,
        "ETag": f'"{etag}"',
        "X-Linked-Etag": f'"{etag}"',
        "X-Linked-Size": str(content.size),
        "Accept-Ranges": "bytes",
    }
    return Reply(route="resolve", path=path, status=status, headers=shown)


def _missing(route: str, request: Request) -> Reply:
    """A repository that isn't there, or that this token may not know of: 401 without a token, else 404."""
    text = "Repository not found" if request.bearer else "Invalid username or password."
    return _error(route, 404 if request.bearer else 401, "RepoNotFound", text)


def _error(
    route: str, status: int, code: str, text: str, *, path: str = "", headers: dict[str, str] | None = None
) -> Reply:
    shown = {**(headers or {}), "X-Error-Message": text}
    if code:
        shown["X-Error-Code"] = code
    return json_reply(route, {"error": text}, status=status, path=path, headers=shown)


def _lfs(path: str, content: Content) -> dict[str, object] | None:
    if not is_large(path, content):
        return None
    return {"oid": sha256(content), "size": content.size, "pointerSize": _POINTER_SIZE}


def _info(repository: Repository, commit: Commit, *, blobs: bool) -> dict[str, object]:
    siblings: list[dict[str, object]] = []
    for path, content in sorted(commit.files.items()):
        one: dict[str, object] = {"rfilename": path}
        if blobs:
            one |= {"size": content.size, "blobId": git_sha1(content)}
            if is_large(path, content):
                one["lfs"] = {"sha256": sha256(content), "size": content.size, "pointerSize": _POINTER_SIZE}
        siblings.append(one)
    return {
        "_id": commit.sha[:24],
        "id": repository.name,
        "modelId": repository.name,
        "sha": commit.sha,
        "private": repository.private,
        "gated": "auto" if repository.gated else False,
        "lastModified": _WHEN,
        "siblings": siblings,
        "tags": [],
    }


def _refs(repository: Repository) -> dict[str, object]:
    def shown(kind: str, name: str, sha: str) -> dict[str, str]:
        return {"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": sha}

    refs = repository.refs.items()
    return {
        "branches": [shown("heads", name, sha) for name, sha in refs if name not in repository.tags],
        "tags": [shown("tags", name, sha) for name, sha in refs if name in repository.tags],
        "converts": [],
    }


def _entries(commit: Commit, root: str, *, recursive: bool) -> list[dict[str, object]]:
    prefix = f"{root}/" if root else ""
    shown: dict[str, dict[str, object]] = {}
    for path, content in sorted(commit.files.items()):
        if not path.startswith(prefix):
            continue
        parts = path.removeprefix(prefix).split("/")
        for depth in range(1, len(parts) if recursive else min(2, len(parts))):
            folder = prefix + "/".join(parts[:depth])
            shown[folder] = {"type": "directory", "oid": commit.sha, "size": 0, "path": folder}
        if recursive or len(parts) == 1:
            entry = {"type": "file", "oid": git_sha1(content), "size": content.size, "path": path}
            lfs = _lfs(path, content)
            shown[path] = entry if lfs is None else {**entry, "lfs": lfs}
    return list(shown.values())
