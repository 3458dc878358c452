"""The cluster's API through `kubectl proxy`: any kubeconfig, any way to log in, plain HTTP for us."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Final

from noctaya_apiserver import ApiClient, Child, ChildFailed, wait_for

START_SECONDS: Final = 30.0


class Access:
    """Administrator's access to a cluster; a context manager.

    Args:
        kubeconfig: which cluster, and as whom.
        folder: for the proxy's log.
        kubectl: the program.
    """

    def __init__(self, kubeconfig: Path, folder: Path, *, kubectl: str | Path = "kubectl") -> None:
        self._argv = (str(kubectl), f"--kubeconfig={kubeconfig}")
        self._log = folder / f"kubectl-proxy-{os.getpid()}.log"  # the proxy's address is read from it
        self._proxy: Child | None = None
        self._api: ApiClient | None = None

    def __enter__(self) -> Access:
        proxy = Child("kubectl proxy", [*self._argv, "proxy", "--port=0"], log=self._log)
        try:
            address = wait_for(lambda: _address(proxy), within=START_SECONDS, what="kubectl proxy")
        except BaseException:
            proxy.stop()
            raise
        self._proxy, self._api = proxy, ApiClient(f"http://{address}")
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._api is not None:
            self._api.close()
        if self._proxy is not None:
            self._proxy.stop()
        self._log.unlink(missing_ok=True)

    @property
    def api(self) -> ApiClient:
        """The API, for any thread."""
        assert self._api is not None, "use it as a context manager"
        return self._api

    def kubectl(self, *arguments: str, stdin: bytes | None = None, within: float = 120.0) -> str:
        """Run kubectl; what it says. AssertionError when it fails, with what it said."""
        done = subprocess.run(
            [*self._argv, *arguments], input=stdin, capture_output=True, check=False, timeout=within
        )
        assert done.returncode == 0, (
            f"kubectl {' '.join(arguments)} ended with {done.returncode}: "
            f"{done.stderr.decode(errors='replace').strip()}"
        )
        return done.stdout.decode(errors="replace")


def _address(proxy: Child) -> str:
    if not proxy.running:
        raise ChildFailed(f"kubectl proxy: {proxy.last_words()}")
    found = re.search(r"Starting to serve on (\S+)", proxy.output())
    return found[1] if found else ""
