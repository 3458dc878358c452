"""Model URIs: what a service serves and where its weights come from.

One parser serves the operator, the embedded mode and the prewarm agent, so that a URI never means two
things. Hub repositories are named verbatim, with an optional `@revision`; claims and OCI artifacts become
paths inside the container and are therefore parsed strictly: nothing that could leave its directory is
accepted.
"""

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from noctaya_api.names import ENV_USE_MODELSCOPE, MODELS_MOUNT, OCI_CACHE_DIR, READY_MARKER


class ModelSourceError(ValueError):
    """A model can't be resolved from what the service says about it."""


class Scheme(StrEnum):
    """Kinds of sources; `huggingface://` is another spelling of `hf://`."""

    HF = "hf"
    MODELSCOPE = "modelscope"
    PVC = "pvc"
    OCI = "oci"


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """A parsed model URI. Fields that a scheme doesn't have are empty."""

    uri: str
    scheme: Scheme
    path: str
    """What `{{ .Model.Path }}` gives: a hub repository id, or an absolute path inside the container."""
    revision: str = ""
    """Branch, tag or commit of a hub repository; empty means the hub's default branch."""
    claim: str = ""
    """PersistentVolumeClaim that holds the weights."""
    subpath: str = ""
    """Path of the weights inside the claim; empty means the whole volume."""
    reference: str = ""
    """OCI reference without the scheme: registry, repository and digest."""
    digest: str = ""
    """OCI digest, 64 lower-case hexadecimal characters without the algorithm."""
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Environment that serving and prewarm containers need for this source."""

    @property
    def is_hub(self) -> bool:
        """Whether the weights come from a model hub that the serving container can reach by itself."""
        return self.scheme in {Scheme.HF, Scheme.MODELSCOPE}

    @property
    def ready_marker(self) -> str:
        """Path of the file that says an OCI artifact is completely staged; empty for other sources."""
        return f"{self.path}/{READY_MARKER}" if self.scheme is Scheme.OCI else ""


_SCHEMES: Final = {
    "hf": Scheme.HF,
    "huggingface": Scheme.HF,
    "modelscope": Scheme.MODELSCOPE,
    "pvc": Scheme.PVC,
    "oci": Scheme.OCI,
}
_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_MAX_SUBDOMAIN: Final = 253
_OCI: Final = re.compile(
    r"(?P<registry>[a-z0-9.-]+(?::(?P<port>[0-9]+))?)"
    r"/(?P<repository>[a-z0-9]+(?:[._/-][a-z0-9]+)*)"
    r"@sha256:(?P<digest>[0-9a-f]{64})"
)
_MAX_PORT: Final = 65535
# What git refuses in a reference name, which is what both hubs use for revisions.
_BAD_REVISION: Final = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|^[-./]|[./]$|\.lock(?:/|$)")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def parse_model_source(uri: str, *, has_secret: bool = False) -> ModelSource:
    """Parse a model URI.

    `has_secret` says that the source names a pull secret, which only an OCI registry can use.
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
            "use hf, huggingface, modelscope, pvc or oci"
        )
    if has_secret and scheme is not Scheme.OCI:
        raise ModelSourceError(f"a secretRef is only used for oci:// models, not for {uri!r}")
    if scheme is Scheme.PVC:
        return _parse_claim(uri, rest)
    if scheme is Scheme.OCI:
        return _parse_oci(uri, rest)
    return _parse_hub(uri, rest, scheme)


def _parse_hub(uri: str, rest: str, scheme: Scheme) -> ModelSource:
    repository, marker, revision = rest.partition("@")
    if not repository:
        raise ModelSourceError(f"model URI {uri!r} names no repository before the revision")
    if _CONTROL.search(repository):
        raise ModelSourceError(f"model URI {uri!r} contains control characters")
    if marker and (not revision or _BAD_REVISION.search(revision)):
        raise ModelSourceError(f"model URI {uri!r} has the invalid revision {revision!r} after the @")
    env = {ENV_USE_MODELSCOPE: "true"} if scheme is Scheme.MODELSCOPE else {}
    return ModelSource(uri=uri, scheme=scheme, path=repository, revision=revision, env=MappingProxyType(env))


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


def _parse_oci(uri: str, rest: str) -> ModelSource:
    found = _OCI.fullmatch(rest)
    if found is None or ".." in rest or (found["port"] and not 1 <= int(found["port"][:6]) <= _MAX_PORT):
        raise ModelSourceError(
            f"model URI {uri!r} must read oci://registry[:port]/repository@sha256:<64 hexadecimal digits>, "
            "in lower case and pinned by digest"
        )
    digest = found["digest"]
    path = f"{OCI_CACHE_DIR}/sha256-{digest}"
    return ModelSource(uri=uri, scheme=Scheme.OCI, path=path, reference=rest, digest=digest)
