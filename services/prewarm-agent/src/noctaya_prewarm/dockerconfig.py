"""Registry credentials as they stand in a Secret of type kubernetes.io/dockerconfigjson.

The file has grown wild: hosts with and without scheme, port and path, credentials as one encoded field, as
two, or as a token, and entries that only name a program which would have them. All plain forms are read here,
and the entry that fits a repository best is chosen as the kubelet does for images: the longest path wins.
What can't be used is an error that names the entry and the remedy and never shows a value.
"""

import base64
import binascii
import fnmatch
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from noctaya_prewarm.errors import BadSettings
from noctaya_prewarm.safe_path import shown

DOCKER_HUB: Final = "https://index.docker.io/v1/"
"""How Docker Hub has always been called in these files."""
MAX_BYTES: Final = 1 << 20
"""Kubernetes allows no larger Secret."""
_HUB_NAMES: Final = frozenset(
    {"docker.io", "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}
)
_FIELDS: Final = ("auth", "username", "password", "identitytoken", "registrytoken")
_HOSTS_SHOWN: Final = 8


@dataclass(frozen=True, kw_only=True, repr=False)
class Credential:
    """What to show a registry; fields that the entry doesn't have are empty. It has no repr that tells."""

    username: str = ""
    password: str = ""
    identity_token: str = ""
    registry_token: str = ""

    def __bool__(self) -> bool:
        return bool(self.identity_token or self.registry_token or (self.username and self.password))

    def as_entry(self) -> dict[str, str]:
        """The entry in the one form that every client reads."""
        entry = {}
        if self.username or self.password:
            entry["auth"] = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        if self.identity_token:
            entry["identitytoken"] = self.identity_token
        if self.registry_token:
            entry["registrytoken"] = self.registry_token
        return entry


@dataclass(frozen=True, kw_only=True)
class _Place:
    """A key of the file, or a repository: host with port, and path without slashes at its ends."""

    host: str
    path: str

    def covers(self, other: "_Place") -> bool:
        mine, theirs = self.host.split("."), other.host.split(".")
        same_host = len(mine) == len(theirs) and all(map(_matches, mine, theirs))
        return same_host and f"{other.path}/".startswith(f"{self.path}/" if self.path else "")


def find_credential(content: bytes, *, registry: str, repository: str) -> Credential:
    """The credential for one repository.

    Args:
        content: the file.
        registry: host of the registry, with its port if it has one.
        repository: path of the repository on it.

    Raises:
        BadSettings: the file is malformed, has nothing for the registry, or only the name of a helper.
    """
    config = _parse(content)
    auths = _object(config.get("auths", {}), "auths")
    wanted = _Place(host=_canonical_host(registry), path=repository.strip("/"))
    fitting = sorted(
        (key for key in auths if _place_of(key).covers(wanted)),
        key=lambda key: _rank(key, wanted),
    )
    for key in fitting:
        credential = _read_entry(key, auths[key])
        if credential:
            return credential
    helper = _helper_for(config, wanted)
    if helper:
        raise BadSettings(
            f"the pull secret has no credential for {registry} itself but names the credential helper "
            f"{helper}, a program that does not exist in the cluster; make the secret with "
            "kubectl create secret docker-registry, which stores the credential"
        )
    if fitting:
        raise BadSettings(
            f"the pull secret's entry {shown(fitting[0])} is empty; it needs auth, username and password, "
            "identitytoken or registrytoken"
        )
    hosts = ", ".join(shown(key) for key in list(auths)[:_HOSTS_SHOWN]) or "nothing"
    raise BadSettings(f"the pull secret has no entry for {registry}; it has {hosts}")


def minimal_config(credential: Credential, *, registry: str) -> bytes:
    """A configuration file that holds this one credential, under the key a client looks for."""
    key = DOCKER_HUB if _canonical_host(registry) == "docker.io" else registry
    return json.dumps({"auths": {key: credential.as_entry()}}).encode()


def _parse(content: bytes) -> dict[str, Any]:
    if len(content) > MAX_BYTES:
        raise BadSettings(f"the pull secret has more than {MAX_BYTES} bytes")
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError):
        # The parser's own message is dropped: it quotes what it could not read.
        raise BadSettings(
            "the pull secret is not JSON; its key .dockerconfigjson must hold a Docker configuration file"
        ) from None
    config = _object(parsed, "the file")
    if "auths" not in config and _is_flat(config):
        return {"auths": config}
    return config


def _is_flat(config: Mapping[str, Any]) -> bool:
    """Whether it is the old .dockercfg, which is the content of auths alone."""
    return bool(config) and all(
        isinstance(entry, dict) and any(field in entry for field in _FIELDS) for entry in config.values()
    )


def _object(value: Any, what: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadSettings(f"the pull secret is malformed: {what} must be a JSON object")
    return value


def _read_entry(key: str, value: Any) -> Credential:
    where = f"entry {shown(key)}"
    entry = _object(value, where)
    texts: dict[str, str] = {}
    for field in _FIELDS:
        text = entry.get(field)
        if text is not None and not isinstance(text, str):
            raise BadSettings(f"the pull secret is malformed: {field} of {where} must be text")
        texts[field] = text or ""
    username, password = texts["username"], texts["password"]
    if texts["auth"]:
        username, password = _decode_auth(texts["auth"], where)
    elif bool(username) != bool(password) and not (texts["identitytoken"] or texts["registrytoken"]):
        missing = "password" if username else "username"
        raise BadSettings(f"the pull secret is malformed: {where} has no {missing}")
    return Credential(
        username=username,
        password=password,
        identity_token=texts["identitytoken"],
        registry_token=texts["registrytoken"],
    )


def _decode_auth(text: str, where: str) -> tuple[str, str]:
    compact = "".join(text.split())
    try:
        decoded = base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        raise BadSettings(f"the pull secret is malformed: auth of {where} is not base64 of text") from None
    username, colon, password = decoded.partition(":")
    if not colon or not username:
        raise BadSettings(
            f"the pull secret is malformed: auth of {where} must be base64 of username:password"
        )
    # Docker pads some passwords with NUL bytes and strips them again.
    return username, password.strip("\0")


def _helper_for(config: Mapping[str, Any], wanted: _Place) -> str:
    helpers = _object(config.get("credHelpers", {}), "credHelpers")
    for key, name in helpers.items():
        if _place_of(key).covers(wanted) and isinstance(name, str) and name:
            return shown(f"docker-credential-{name}")
    store = config.get("credsStore")
    return shown(f"docker-credential-{store}") if isinstance(store, str) and store else ""


def _place_of(key: str) -> _Place:
    rest = key.strip()
    for scheme in ("https://", "http://"):
        if rest.lower().startswith(scheme):
            rest = rest[len(scheme) :]
    host, _, path = rest.partition("/")
    parts = [part for part in path.split("/") if part]
    if parts and parts[0] in {"v1", "v2"}:
        parts = parts[1:]
    return _Place(host=_canonical_host(host), path="/".join(parts))


def _canonical_host(host: str) -> str:
    lower = host.lower()
    return "docker.io" if lower in _HUB_NAMES else lower


def _matches(pattern: str, label: str) -> bool:
    return fnmatch.fnmatchcase(label, pattern) if pattern else not label


def _rank(key: str, wanted: _Place) -> tuple[int, bool, bool]:
    """Best first: the longest path, a host without wildcards, a key that is written as the host itself."""
    place = _place_of(key)
    return -len(place.path), place.host != wanted.host, "://" in key
