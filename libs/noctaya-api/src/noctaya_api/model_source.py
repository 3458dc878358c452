"""Model URIs: what a service serves and where its weights come from.

One parser serves the operator, the embedded mode and the prewarm agent, so that a URI never means two
things. Hub repositories are named verbatim, with an optional `@revision`; claims, buckets and OCI artifacts
become paths inside the container and are therefore parsed strictly: nothing that could leave its directory is
accepted.
"""

import hashlib
import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from noctaya_api.names import ENV_USE_MODELSCOPE, MODELS_MOUNT, OCI_CACHE_DIR, PREWARMED_DIR, READY_MARKER


class ModelSourceError(ValueError):
    """A model can't be resolved from what the service says about it."""


class Scheme(StrEnum):
    """Kinds of sources; `huggingface://` is another spelling of `hf://`."""

    HF = "hf"
    MODELSCOPE = "modelscope"
    S3 = "s3"
    PVC = "pvc"
    OCI = "oci"


@dataclass(frozen=True, kw_only=True)
class FileFilter:
    """Shell patterns over the paths of a repository's files; without any, all files are meant."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


ALL_FILES: Final = FileFilter()


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """A parsed model URI. Fields that a scheme doesn't have are empty."""

    uri: str
    scheme: Scheme
    path: str
    """What `{{ .Model.Path }}` gives unless weights are prewarmed: a hub repository id, or an absolute path
    inside the container. Empty for a bucket, which no engine reads by itself."""
    revision: str = ""
    """Branch, tag or commit of a hub repository; empty means the hub's default branch."""
    claim: str = ""
    """PersistentVolumeClaim that holds the weights."""
    subpath: str = ""
    """Path of the weights inside the claim; empty means the whole volume."""
    reference: str = ""
    """OCI reference without the scheme: registry, repository and digest, or tag."""
    tag: str = ""
    """Tag of an OCI artifact that is not pinned yet; then `digest` is empty and `path` means nothing."""
    digest: str = ""
    """OCI digest, 64 lower-case hexadecimal characters without the algorithm."""
    bucket: str = ""
    """Name of an S3 bucket."""
    prefix: str = ""
    """Path inside the bucket, without a slash at either end; empty means the whole bucket."""
    endpoint: str = ""
    """URL of the hub or S3 service where it is not the usual one; for OCI that of a registry without TLS."""
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Environment that serving and prewarm containers need for this source."""

    @property
    def is_hub(self) -> bool:
        """Whether the weights come from a model hub that the serving container can reach by itself."""
        return self.scheme in {Scheme.HF, Scheme.MODELSCOPE}

    @property
    def canonical_uri(self) -> str:
        """The URI in the one spelling that all equal ones have, for comparing what was downloaded."""
        match self.scheme:
            case Scheme.S3:
                location = f"{self.bucket}/{self.prefix}".removesuffix("/")
            case Scheme.PVC:
                location = f"{self.claim}/{self.subpath}".removesuffix("/")
            case Scheme.OCI:
                location = self.reference
            case Scheme.HF | Scheme.MODELSCOPE:
                location = f"{self.path}@{self.revision}" if self.revision else self.path
        return f"{self.scheme}://{location}"

    @property
    def ready_marker(self) -> str:
        """Path of the file that says an OCI artifact is completely staged; empty for other sources."""
        return f"{self.path}/{READY_MARKER}" if self.scheme is Scheme.OCI else ""

    def pinned(self, digest: str) -> "ModelSource":
        """The artifact that a tag was resolved to. `digest` is 64 hexadecimal characters, with or without
        `sha256:`. Raises ModelSourceError."""
        found = digest.removeprefix("sha256:")
        if not self.tag or _DIGEST.fullmatch(found) is None:
            raise ModelSourceError(f"{self.uri!r} can't be pinned to {digest!r}")
        reference = f"{self.reference.removesuffix(f':{self.tag}')}@sha256:{found}"
        path = f"{OCI_CACHE_DIR}/sha256-{found}"
        return replace(self, reference=reference, path=path, tag="", digest=found)


_SCHEMES: Final = {
    "hf": Scheme.HF,
    "huggingface": Scheme.HF,
    "modelscope": Scheme.MODELSCOPE,
    "s3": Scheme.S3,
    "pvc": Scheme.PVC,
    "oci": Scheme.OCI,
}
_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_MAX_SUBDOMAIN: Final = 253
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_OCI: Final = re.compile(
    r"(?P<registry>[a-z0-9.-]+(?::(?P<port>[0-9]+))?)"
    r"/(?P<repository>[a-z0-9]+(?:[._/-][a-z0-9]+)*)"
    r"(?:@sha256:(?P<digest>[0-9a-f]{64})|:(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))"
)
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_MAX_PORT: Final = 65535
_ENDPOINT: Final = re.compile(r"https?://[^/?#@\s]+(/[^?#@\s]*)?")
# What git refuses in a reference name, which is what both hubs use for revisions.
_BAD_REVISION: Final = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|^[-./]|[./]$|\.lock(?:/|$)")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def parse_model_source(
    uri: str, *, has_secret: bool = False, allow_tags: bool = False, endpoint: str = ""
) -> ModelSource:
    """Parse a model URI.

    `has_secret` says that the source names a Secret, which a claim has no use for; `allow_tags` accepts an
    OCI tag in place of a digest; `endpoint` is the URL of the hub, S3 service or registry without TLS.
    Raises ModelSourceError with a message that says what is expected.
    """
    prefix, separator, rest = uri.partition("://")
    if not separator:
        raise ModelSourceError(f"model URI {uri!r} has no scheme; write for example hf://{uri or 'org/name'}")
    if not rest:
        raise ModelSourceError(f"model URI {uri!r} names nothing after the scheme")
    scheme = _SCHEMES.get(prefix.lower())
    if scheme is None:
        raise ModelSourceError(
            f"model URI {uri!r} has the unsupported scheme {prefix!r}; "
            "use hf, huggingface, modelscope, s3, pvc or oci"
        )
    if endpoint and _ENDPOINT.fullmatch(endpoint) is None:
        raise ModelSourceError(
            f"the endpoint {endpoint!r} must be an http:// or https:// URL without query or credentials"
        )
    if scheme is Scheme.PVC and (has_secret or endpoint):
        raise ModelSourceError(
            f"{'a secretRef' if has_secret else 'an endpoint'} is of no use to the claim {uri!r}"
        )
    if scheme is Scheme.PVC:
        return _parse_claim(uri, rest)
    if scheme is Scheme.OCI:
        return _parse_oci(uri, rest, allow_tags=allow_tags, endpoint=endpoint)
    if scheme is Scheme.S3:
        return _parse_bucket(uri, rest, endpoint)
    return _parse_hub(uri, rest, scheme=scheme, endpoint=endpoint)


def cache_dir(source: ModelSource, files: FileFilter = ALL_FILES) -> str:
    """Directory in the container that holds the prewarmed weights of a source.

    It is the same for everything that names the same files of the same revision at the same place, so that
    services with a common cache share it; a mirror of a hub is the same place, another S3 endpoint is not.
    """
    if source.scheme not in {Scheme.HF, Scheme.MODELSCOPE, Scheme.S3}:
        return source.path
    identity = {
        "scheme": source.scheme,
        "location": f"{source.bucket}/{source.prefix}" if source.scheme is Scheme.S3 else source.path,
        "revision": source.revision,
        "endpoint": source.endpoint.rstrip("/") if source.scheme is Scheme.S3 else "",
        "include": sorted(set(files.include)),
        "exclude": sorted(set(files.exclude)),
    }
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{PREWARMED_DIR}/{source.scheme}-{key}"


def _parse_hub(uri: str, rest: str, *, scheme: Scheme, endpoint: str) -> ModelSource:
    repository, marker, revision = rest.partition("@")
    if not repository:
        raise ModelSourceError(f"model URI {uri!r} names no repository before the revision")
    if _CONTROL.search(repository):
        raise ModelSourceError(f"model URI {uri!r} contains control characters")
    if marker and (not revision or _BAD_REVISION.search(revision)):
        raise ModelSourceError(f"model URI {uri!r} has the invalid revision {revision!r} after the @")
    env = {ENV_USE_MODELSCOPE: "true"} if scheme is Scheme.MODELSCOPE else {}
    return ModelSource(
        uri=uri,
        scheme=scheme,
        path=repository,
        revision=revision,
        endpoint=endpoint,
        env=MappingProxyType(env),
    )


def _parse_bucket(uri: str, rest: str, endpoint: str) -> ModelSource:
    bucket, _, prefix = rest.partition("/")
    if _BUCKET.fullmatch(bucket) is None or ".." in bucket:
        raise ModelSourceError(
            f"model URI {uri!r} does not begin with the name of a bucket: 3 to 63 lower-case letters, "
            "digits, dots and dashes"
        )
    prefix = prefix.removesuffix("/")
    unclean = prefix and (posixpath.normpath(prefix) != prefix or prefix.startswith("/"))
    if unclean or prefix.split("/")[0] in {".", ".."} or _CONTROL.search(prefix):
        raise ModelSourceError(f"the prefix {prefix!r} of model URI {uri!r} must be without . .. or //")
    return ModelSource(uri=uri, scheme=Scheme.S3, path="", bucket=bucket, prefix=prefix, endpoint=endpoint)


def _parse_claim(uri: str, rest: str) -> ModelSource:
    claim, _, subpath = rest.partition("/")
    if len(claim) > _MAX_SUBDOMAIN or _SUBDOMAIN.fullmatch(claim) is None:
        raise ModelSourceError(f"model URI {uri!r} does not begin with the name of a PersistentVolumeClaim")
    # normpath keeps two leading slashes, which is fine here: a leading slash is refused anyway.
    unclean = subpath and (posixpath.normpath(subpath) != subpath or subpath.startswith("/"))
    if unclean or subpath.split("/")[0] == ".." or _CONTROL.search(subpath):
        raise ModelSourceError(
            f"the path {subpath!r} of model URI {uri!r} must be relative, without . .. or //"
        )
    subpath = "" if subpath == "." else subpath
    path = posixpath.join(MODELS_MOUNT, subpath) if subpath else MODELS_MOUNT
    return ModelSource(uri=uri, scheme=Scheme.PVC, path=path, claim=claim, subpath=subpath)


def _parse_oci(uri: str, rest: str, *, allow_tags: bool, endpoint: str) -> ModelSource:
    found = _OCI.fullmatch(rest)
    if found is None or ".." in rest or (found["port"] and not 1 <= int(found["port"][:6]) <= _MAX_PORT):
        raise ModelSourceError(
            f"model URI {uri!r} must read oci://registry[:port]/repository@sha256:<64 hexadecimal digits>, "
            "in lower case and pinned by digest"
        )
    if found["tag"] and not allow_tags:
        raise ModelSourceError(
            f"model URI {uri!r} names a tag, which may come to mean something else; pin it by "
            "@sha256:<64 hexadecimal digits>, or set model.source.allowTags"
        )
    if endpoint and (urlsplit(endpoint).scheme, endpoint.rstrip("/")) != (
        "http",
        f"http://{found['registry']}",
    ):
        raise ModelSourceError(
            f"the endpoint of an oci:// model can only be http://{found['registry']}, for a registry without "
            f"TLS, not {endpoint!r}"
        )
    digest = found["digest"] or ""
    return ModelSource(
        uri=uri,
        scheme=Scheme.OCI,
        path=f"{OCI_CACHE_DIR}/sha256-{digest or UNRESOLVED}",
        reference=rest,
        tag=found["tag"] or "",
        digest=digest,
        endpoint=endpoint,
    )


UNRESOLVED: Final = "unresolved"
"""Stands for the digest in the path of an artifact whose tag was not resolved yet."""
