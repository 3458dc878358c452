"""The manifest of an OCI artifact, read as strictly as something foreign deserves.

Whoever pins a digest pins these bytes, and with them the digest and size of every layer. Everything here is
pure: bytes in, a manifest or an error out.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from noctaya_prewarm.errors import IntegrityFault, Refused
from noctaya_prewarm.safe_path import shown

MAX_MANIFEST: Final = 4 << 20
"""Bytes; the distribution specification asks registries to take manifests of at least that size."""
MAX_LAYERS: Final = 4096
"""Far above any model (the largest have some hundred files), far below what would only serve an attack."""
ANNOTATION_TITLE: Final = "org.opencontainers.image.title"
ANNOTATION_UNPACK: Final = "io.deis.oras.content.unpack"
ANNOTATION_TAR_DIGEST: Final = "io.deis.oras.content.digest"
ANNOTATION_FILEPATH: Final = "org.cncf.model.filepath"

_MANIFESTS: Final = frozenset(
    {
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    }
)
_INDEXES: Final = frozenset(
    {
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
    }
)
_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")
_ALGORITHM: Final = re.compile(r"[a-z0-9]+(?:[+._-][a-z0-9]+)*")
_MAX_SIZE: Final = 1 << 50
_INDEX_SHOWN: Final = 4


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One blob of an artifact.

    Attributes:
        number: position in the manifest, from 1.
        digest: SHA-256, 64 hexadecimal characters.
        size: bytes.
    """

    number: int
    media_type: str
    digest: str
    size: int
    annotations: Mapping[str, str]

    def __str__(self) -> str:
        title = self.annotations.get(ANNOTATION_TITLE)
        return f"layer {self.number}" + (f" ({shown(title)})" if title else "")


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What an artifact consists of."""

    layers: tuple[Layer, ...]


def parse_manifest(content: bytes) -> Manifest:
    """Read a manifest whose digest has been checked.

    Raises:
        Refused: it is an index, another kind of document, or not what the specification says.
    """
    document = parse_object(content, "the manifest")
    media_type = document.get("mediaType") or ""
    if not isinstance(media_type, str):
        raise Refused("the manifest's mediaType is no text")
    if media_type in _INDEXES or ("manifests" in document and "layers" not in document):
        raise Refused(_is_an_index(document))
    if media_type not in _MANIFESTS | {""}:
        raise Refused(f"the digest is that of a {shown(media_type)}, not of an OCI image manifest")
    if document.get("schemaVersion") != 2 or isinstance(document["schemaVersion"], bool):
        raise Refused("the manifest's schemaVersion is not 2")
    layers = document.get("layers")
    if not isinstance(layers, list):
        raise Refused("the manifest has no list of layers")
    if len(layers) > MAX_LAYERS:
        raise Refused(f"the manifest has {len(layers)} layers; more than {MAX_LAYERS} are refused")
    return Manifest(layers=tuple(_parse_layer(number, one) for number, one in enumerate(layers, 1)))


def parse_object(content: bytes, what: str) -> dict[str, Any]:
    """A JSON object in which no name appears twice, since two readers might take different ones.

    Raises:
        Refused: it is something else.
    """
    try:
        document = json.loads(content, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        detail = str(error) if isinstance(error, _Odd) else "it can't be read"
        raise Refused(f"{what} is not acceptable JSON: {detail}") from None
    if not isinstance(document, dict):
        raise Refused(f"{what} is not a JSON object")
    return document


def parse_digest(value: Any, what: str) -> str:
    """The hexadecimal part of a SHA-256 digest.

    Raises:
        Refused: it is malformed or of another algorithm.
    """
    text = value if isinstance(value, str) else ""
    found = _DIGEST.fullmatch(text)
    if found is not None:
        return found[1]
    algorithm, colon, _ = text.partition(":")
    if colon and algorithm != "sha256" and _ALGORITHM.fullmatch(algorithm):
        raise Refused(f"{what} has a digest of the algorithm {shown(algorithm)}; only sha256 is verified")
    raise Refused(f"{what} has the malformed digest {shown(str(value))}")


def check_digest(actual: str, expected: str, what: str) -> None:
    """Compare two digests.

    Raises:
        IntegrityFault: they differ.
    """
    if actual != expected:
        raise IntegrityFault(
            f"{what} has the digest sha256:{actual}, not sha256:{expected}; it was damaged on the way or the "
            "registry does not serve what it announces"
        )


class _Odd(ValueError):
    """JSON that is legal, and refused all the same."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _Odd("a name appears twice in one object")
    return made


def _no_constant(name: str) -> Any:
    raise _Odd(f"{name} is no number")


def _parse_layer(number: int, value: Any) -> Layer:
    what = f"layer {number}"
    if not isinstance(value, dict):
        raise Refused(f"{what} of the manifest is not an object")
    media_type = value.get("mediaType")
    if not isinstance(media_type, str) or not media_type:
        raise Refused(f"{what} has no media type")
    annotations = value.get("annotations") or {}
    texts = isinstance(annotations, dict) and all(isinstance(text, str) for text in annotations.values())
    if not texts:
        raise Refused(f"the annotations of {what} are not texts")
    return Layer(
        number=number,
        media_type=media_type,
        digest=parse_digest(value.get("digest"), what),
        size=parse_size(value.get("size"), what),
        annotations=annotations,
    )


def parse_size(value: Any, what: str) -> int:
    """Bytes.

    Raises:
        Refused: it is no whole number from 0 to a pebibyte.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_SIZE:
        raise Refused(f"{what} has the impossible size {shown(str(value)[:40])}")
    return value


def _is_an_index(document: Mapping[str, Any]) -> str:
    members = document.get("manifests")
    digests = [
        str(one["digest"])
        for one in (members if isinstance(members, list) else [])
        if isinstance(one, dict) and _DIGEST.fullmatch(str(one.get("digest")))
    ]
    several = "an index of several manifests, not the manifest of one artifact"
    if not digests:
        return f"the digest is that of {several}; pin the digest of a manifest"
    more = ", …" if len(digests) > _INDEX_SHOWN else ""
    return f"the digest is that of {several}; pin one of them: {', '.join(digests[:_INDEX_SHOWN])}{more}"
