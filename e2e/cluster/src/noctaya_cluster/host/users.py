"""Who talks to the API server: the administrator and the parts of the cluster, each with its token."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from noctaya_apiserver.users import MASTERS, User, write_kubeconfig, write_token_file

from .layout import NODES, Layout

NAME: Final = "noctaya"
"""Of the kubeconfig's context."""
ADMIN: Final = "admin"
MANAGER: Final = "kube-controller-manager"
SCHEDULER: Final = "kube-scheduler"
PROXY: Final = "kube-proxy"
ROUTER: Final = "kube-router"
PROVISIONER: Final = "volume-provisioner"


def users() -> dict[str, User]:
    """By the name of their kubeconfig; with new tokens at each call."""
    return {
        ADMIN: User(ADMIN, (MASTERS,)),
        MANAGER: User("system:kube-controller-manager"),
        SCHEDULER: User("system:kube-scheduler"),
        PROXY: User("system:kube-proxy"),
        # These two have no role of Kubernetes' own; what they may do is not what anything here tests.
        ROUTER: User(ROUTER, (MASTERS,)),
        PROVISIONER: User(PROVISIONER, (MASTERS,)),
        **{node: User(f"system:node:{node}", ("system:nodes",)) for node in NODES},
    }


def write_credentials(layout: Layout, *, server: str, ca_file: Path) -> None:
    """The API server's token file and everybody's kubeconfig."""
    everybody = users()
    write_token_file(tuple(everybody.values()), layout.pki / "tokens.csv")
    for name, user in everybody.items():
        file = layout.kubeconfig if name == ADMIN else layout.user_config(name)
        write_kubeconfig(user, file, server=server, ca_file=ca_file, name=NAME)
