"""How this machine reaches its Python package index, handed to a build without staying in an image.

pip's settings (files, `PIP_*`, and uv's where pip has none), the bundle of certification authorities and
`.netrc` become BuildKit secrets: files that exist while one step of a build stage runs. Proxies become
the build arguments that Docker keeps out of an image's history. Settings that name files of this machine
can't work inside a build and are left out.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TAKEN: Final = (
    "index-url",
    "extra-index-url",
    "find-links",
    "trusted-host",
    "proxy",
    "timeout",
    "retries",
    "no-index",
)
FROM_UV: Final = {
    "index-url": ("UV_DEFAULT_INDEX", "UV_INDEX_URL"),
    "extra-index-url": ("UV_INDEX", "UV_EXTRA_INDEX_URL"),
}
SECTIONS: Final = ("global", "install")
PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")
CA_VARIABLES: Final = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
CA_IN_BUILD: Final = "/run/secrets/ca"


@dataclass(frozen=True)
class PackageIndex:
    """What a build is given. `secrets` holds the content of each secret by its id."""

    secrets: Mapping[str, bytes]
    build_args: Mapping[str, str]


def machine_settings(
    *, env: Mapping[str, str] = os.environ, files: tuple[Path, ...] | None = None, home: Path | None = None
) -> PackageIndex:
    """Read the settings of this machine.

    Args:
        env: the environment.
        files: configuration files in the order in which pip reads them; default: pip's own places.
        home: where `.netrc` is looked for.
    """
    home = home or Path.home()
    found = _from_files(_pip_files(env, home) if files is None else files)
    certificate = found.pop("cert", "")
    for name in TAKEN:
        for variable in (f"PIP_{name.upper().replace('-', '_')}", *FROM_UV.get(name, ())):
            if env.get(variable) and (variable.startswith("PIP_") or name not in found):
                found[name] = env[variable]
                break
    secrets: dict[str, bytes] = {}
    bundle = next((env[name] for name in CA_VARIABLES if env.get(name)), certificate)
    lines = ["[global]"]
    if bundle and Path(bundle).is_file():
        secrets["ca"] = Path(bundle).read_bytes()
        lines.append(f"cert = {CA_IN_BUILD}")
    for name in TAKEN:
        values = found.get(name, "").split()
        if name == "find-links":
            values = [value for value in values if "://" in value and not value.startswith("file:")]
        if values:
            lines.append(f"{name} = {' '.join(values)}")
    secrets["pip"] = "\n".join([*lines, ""]).encode()
    netrc = Path(env.get("NETRC") or home / ".netrc")
    if netrc.is_file():
        secrets["netrc"] = netrc.read_bytes()
    proxies = {name: value for name in PROXIES if (value := env.get(name) or env.get(name.lower()))}
    return PackageIndex(secrets=secrets, build_args=proxies)


def _pip_files(env: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    own = env.get("PIP_CONFIG_FILE")
    if own == os.devnull:
        return ()
    config = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    shared = [Path(folder) for folder in (env.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":") if folder]
    return (
        *(folder / "pip/pip.conf" for folder in shared),
        Path("/etc/pip.conf"),
        home / ".pip/pip.conf",
        config / "pip/pip.conf",
        *((Path(own),) if own else ()),
    )


def _from_files(files: tuple[Path, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for file in files:
        if not file.is_file():
            continue
        parser = configparser.RawConfigParser()
        parser.read(file)
        for section in SECTIONS:
            if parser.has_section(section):
                options = {name.replace("_", "-"): value for name, value in parser.items(section)}
                found.update({name: value for name, value in options.items() if name in {*TAKEN, "cert"}})
    return found
