"""A registry of OCI artifacts, as far as pulls use it: manifests by tag and digest, blobs, a password.

Stories on a cluster need a private registry inside of it. What a registry may do is tested against a real one
elsewhere; this one is here so that such a story needs one image less.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from noctaya_model_hub.content import Content, Inline, sha256
from noctaya_model_hub.exchange import Reply, Request, file_reply, json_reply, text_reply

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_EMPTY = b"{}"
_TITLE = "org.opencontainers.image.title"


@dataclass(kw_only=True)
class Artifacts:
    """What one repository of the registry holds.

    Attributes:
        users: passwords by name; empty: anybody may pull.
        manifests: by digest.
        tags: digests by tag.
        blobs: by digest.
    """

    users: Mapping[str, str] = field(default_factory=dict)
    manifests: dict[str, bytes] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    blobs: dict[str, Content] = field(default_factory=dict)

    def push(self, files: Mapping[str, Content], *, tag: str) -> str:
        """Add an artifact of plain files, as oras makes it, and point the tag to it. Gives its digest."""
        empty = Inline(_EMPTY)
        layers = [
            {**_describe(content, "application/octet-stream"), "annotations": {_TITLE: path}}
            for path, content in files.items()
        ]
        document = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": "application/vnd.unknown.artifact.v1",
            "config": _describe(empty, "application/vnd.oci.empty.v1+json"),
            "layers": layers,
        }
        manifest = json.dumps(document).encode()
        digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
        self.blobs |= {f"sha256:{sha256(content)}": content for content in (empty, *files.values())}
        self.manifests[digest] = manifest
        self.tags[tag] = digest
        return digest


class Registry:
    """Answers requests below `/v2/`.

    Args:
        repositories: artifacts by the name of their repository.
    """

    def __init__(self, repositories: Mapping[str, Artifacts]) -> None:
        self._repositories = repositories

    def answer(self, request: Request) -> Reply | None:
        """The reply, or None when the path is no registry's."""
        match request.segments:
            case ["v2"] | ["v2", ""]:
                return json_reply("oci-ping", {})
            case ["v2", *name, "manifests" | "blobs" as kind, wanted] if name:
                return self._content("/".join(name), kind, wanted, request)
        return None

    def _content(self, name: str, kind: str, wanted: str, request: Request) -> Reply:
        route = "oci-manifest" if kind == "manifests" else "oci-blob"
        repository = self._repositories.get(name)
        if repository is not None and repository.users and not _is_one_of(request, repository.users):
            return _refused(route, 401, "UNAUTHORIZED", headers={"WWW-Authenticate": 'Basic realm="hub"'})
        if repository is None:
            return _refused(route, 404, "NAME_UNKNOWN")
        if kind == "blobs":
            blob = repository.blobs.get(wanted)
            if blob is None:
                return _refused(route, 404, "BLOB_UNKNOWN")
            return file_reply(route, wanted, blob, request, etag=wanted)
        digest = repository.tags.get(wanted, wanted)
        manifest = repository.manifests.get(digest)
        if manifest is None:
            return _refused(route, 404, "MANIFEST_UNKNOWN")
        headers = {"Content-Type": MANIFEST, "Docker-Content-Digest": digest}
        return text_reply(route, 200, manifest.decode(), path=wanted, headers=headers)


def _describe(content: Content, media_type: str) -> dict[str, object]:
    return {"mediaType": media_type, "digest": f"sha256:{sha256(content)}", "size": content.size}


def _is_one_of(request: Request, users: Mapping[str, str]) -> bool:
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    try:
        name, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return False
    return scheme.lower() == "basic" and users.get(name) == password != ""


def _refused(route: str, status: int, code: str, *, headers: Mapping[str, str] | None = None) -> Reply:
    return json_reply(route, {"errors": [{"code": code}]}, status=status, headers=headers)
