"""Who may talk to the control plane: static tokens, and kubeconfig files that hold them."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path

import yaml

MASTERS = "system:masters"


@dataclass(frozen=True)
class User:
    """A user of the token file. Only `system:masters` may do everything; others need RBAC rules."""

    name: str
    groups: tuple[str, ...] = ()
    token: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)


ADMIN = "admin"
CONTROLLERS = "controllers"


def default_users() -> tuple[User, ...]:
    """The one behind `kubectl`, and the controller manager."""
    return User(ADMIN, (MASTERS,)), User(CONTROLLERS, (MASTERS,))


def write_token_file(users: tuple[User, ...], file: Path) -> None:
    """The API server's `--token-auth-file`."""
    lines = [f'{user.token},{user.name},{user.name},"{",".join(user.groups)}"' for user in users]
    file.touch(mode=0o600)
    file.write_text("\n".join(lines) + "\n")


def write_kubeconfig(
    user: User, file: Path, *, server: str, ca_file: Path, name: str = "noctaya-apiserver"
) -> None:
    """A kubeconfig with one context, called `name`, for one user; readable by us alone."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority": str(ca_file)}}],
        "users": [{"name": user.name, "user": {"token": user.token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user.name}}],
        "current-context": name,
    }
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(config, sort_keys=False))
