"""Settings of the package index reach a build and stay in no image."""

from __future__ import annotations

import base64
import io
import secrets
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from noctaya_engine import Built, Engine
from noctaya_engine.archive import opened
from noctaya_engine.base import BUILD, ensure_bases
from noctaya_engine.context import collect, write_tar
from noctaya_engine.package_index import machine_settings

BEGIN = b"-----BEGIN CERTIFICATE-----"
WHEEL = "trialpackage-1.0-py3-none-any.whl"
REFERENCE = "noctaya/trial-package-index:1"
DOCKERFILE = """\
ARG BUILD_IMAGE
FROM ${BUILD_IMAGE} AS build
RUN python3 -m venv /tools
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca \\
    /tools/bin/pip install --no-cache-dir --root-user-action ignore --target /installed trialpackage
FROM scratch
COPY --from=build /installed /installed
COPY --from=build /etc /etc
COPY --from=build /run /run
"""


def wheel() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as whole:
        whole.writestr("trialpackage.py", "")
        about = "trialpackage-1.0.dist-info"
        whole.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: trialpackage\nVersion: 1.0\n")
        whole.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        whole.writestr(f"{about}/RECORD", "")
    return file.getvalue()


class Index(ThreadingHTTPServer):
    """A package index with one package, for those who know the password."""

    def __init__(self, password: str) -> None:
        super().__init__(("127.0.0.1", 0), Pages)
        self.expected = "Basic " + base64.b64encode(f"reader:{password}".encode()).decode()
        self.url = f"http://reader:{password}@127.0.0.1:{self.server_port}/simple"


class Pages(BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        if self.headers.get("Authorization") != self.server.expected:
            self.send_response(401)
            self.send_header("WWW-Authenticate", "Basic")
            self.end_headers()
            return
        page = f'<a href="/{WHEEL}">{WHEEL}</a>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream" if WHEEL in self.path else "text/html")
        self.end_headers()
        self.wfile.write(wheel() if WHEEL in self.path else page)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the test reads no log."""


@pytest.fixture
def password() -> str:
    return f"password-{secrets.token_hex(16)}"


@pytest.fixture
def index(password: str) -> Iterator[Index]:
    with Index(password) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def held(image: Path, texts: list[bytes]) -> set[bytes]:
    """Those of the texts that are in a layer or in the configuration with its history and labels."""
    found: set[bytes] = set()
    with opened(image) as archive:
        for layer in archive.layers:
            content = archive.raw_layer(layer).read()
            found |= {text for text in texts if text in content}
    with tarfile.open(image) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.name.endswith(".json") else None
            content = file.read() if file else b""
            found |= {text for text in texts if text in content}
    return found


@pytest.mark.private_engine
def test_credentials_get_a_build_its_packages_and_are_in_no_layer_and_no_history(
    bare_engine: Engine, index: Index, password: str, tmp_path: Path
) -> None:
    authorities = tmp_path / "authorities.pem"
    authorities.write_text(f"# {password}\n")
    settings = machine_settings(
        env={"PIP_INDEX_URL": index.url, "REQUESTS_CA_BUNDLE": str(authorities)}, files=(), home=tmp_path
    )
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)
    context = tmp_path / "context.tar"
    write_tar(collect(tmp_path, ("Dockerfile",), {}), context)
    base = ensure_bases()[BUILD]
    bare_engine.import_root(base.tar, base.reference)
    bare_engine.build_context(
        context,
        dockerfile="Dockerfile",
        reference=REFERENCE,
        build_args={"BUILD_IMAGE": base.reference, **settings.build_args},
        secrets=settings.secrets,
        fresh=True,
    )
    saved = tmp_path / "image.tar"
    bare_engine.save(REFERENCE, saved)
    bare_engine.docker("image", "rm", REFERENCE)
    assert held(saved, [b"trialpackage.py", password.encode()]) == {b"trialpackage.py"}


@pytest.mark.parametrize(
    "name", ["operator", "gateway", "aggregate-scaler", "prewarm-agent", "llamacpp-server"]
)
def test_no_image_holds_a_setting_of_this_machine(name: str, built: dict[str, Built]) -> None:
    settings = machine_settings()
    texts = [line for line in settings.secrets["pip"].splitlines() if b"=" in line]
    texts += [value.encode() for value in settings.build_args.values()]
    texts += foreign_authorities(settings.secrets.get("ca", b""), built[name].tar)
    assert held(built[name].tar, texts) == set()


def foreign_authorities(bundle: bytes, tar: Path) -> list[bytes]:
    """A line of each certificate that this machine trusts and Debian does not."""
    name = "etc/ssl/certs/ca-certificates.crt"
    with opened(tar) as archive:
        debians = set(archive.read(archive.files(), {name})[name].split(BEGIN)[1:])
    return [certificate.split()[2] for certificate in bundle.split(BEGIN)[1:] if certificate not in debians]
