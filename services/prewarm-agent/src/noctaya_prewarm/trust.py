"""Which certificate authorities are trusted: the system's, and those of a private network."""

import os
import ssl
from pathlib import Path

from noctaya_prewarm.errors import BadSettings

# Read by the hubs' libraries and by curl; SSL_CERT_FILE and SSL_CERT_DIR are read by OpenSSL itself.
_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)


def tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """A context for clients that checks certificates and names, TLS 1.2 or newer.

    Args:
        ca_file: PEM file of further authorities; one that doesn't exist adds nothing, since it may be an
            optional key of a mounted Secret.

    Raises:
        BadSettings: a file holds no certificate or can't be read.
    """
    context = ssl.create_default_context()
    for name, path in (
        ("NOCTAYA_PREWARM_CA_FILE", ca_file if ca_file is not None and ca_file.exists() else None),
        *((name, Path(value)) for name in _VARIABLES if (value := os.environ.get(name))),
    ):
        if path is not None:
            _load(context, name, path)
    return context


def bundle_path(ca_file: Path | None) -> str | None:
    """The same for libraries that take one file: its path, or None for their own default.

    The file exists in memory only, since a prewarm pod has no directory to write but the cache.
    """
    own = os.environ.get("SSL_CERT_FILE")
    extra = [path for path in (ca_file, Path(own) if own else None) if path is not None and path.is_file()]
    if not extra:
        return None
    system = [path for text in _SYSTEM_BUNDLES if (path := Path(text)).is_file()][:1]
    content = b"\n".join(path.read_bytes() for path in [*system, *extra])
    handle = os.memfd_create("noctaya-authorities")
    os.write(handle, content)
    return f"/proc/{os.getpid()}/fd/{handle}"


def _load(context: ssl.SSLContext, name: str, path: Path) -> None:
    try:
        if path.is_dir():
            context.load_verify_locations(capath=path)
        else:
            context.load_verify_locations(cafile=path)
    except (OSError, ssl.SSLError) as error:
        raise BadSettings(
            f"{name}: {path} can't be used as a list of certificate authorities: {error}"
        ) from error
