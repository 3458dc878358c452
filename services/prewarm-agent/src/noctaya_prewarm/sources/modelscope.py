"""ModelScope: its own hub client lists the files; the files are fetched by us.

The hub names no commit for a branch. What pins a listing here is therefore a digest over all names, sizes and
SHA-256 values in it, and every file is held to its own SHA-256; one that is listed without one, to its size.
"""

import os
from pathlib import Path

import requests
from modelscope_hub import HubApi, HubConfig
from modelscope_hub.errors import (
    APIError,
    AuthenticationError,
    HubError,
    InvalidParameter,
    NotExistError,
    PermissionDeniedError,
)
from modelscope_hub.types import FileInfo
from noctaya_api.model_source import ModelSource

from noctaya_prewarm.answers import REMEDY, UNREADABLE
from noctaya_prewarm.digest import Digest, Kind
from noctaya_prewarm.errors import BadSettings, IntegrityFault, NetworkFault, NotAuthorised, NotFound
from noctaya_prewarm.listing import Listing, RemoteFile, digest_of
from noctaya_prewarm.retry import Retryable
from noctaya_prewarm.safe_path import safe_path
from noctaya_prewarm.secret import SecretDir, token_from_environment
from noctaya_prewarm.settings import AgentSettings
from noctaya_prewarm.transport import Request
from noctaya_prewarm.trust import bundle_path

_MODEL = "model"
_DEFAULT_REVISION = "master"


class ModelScope:
    """One model repository of ModelScope or of a mirror of it.

    The token is that of the Secret (`token` or `MODELSCOPE_API_TOKEN`), else MODELSCOPE_API_TOKEN.
    """

    def __init__(self, source: ModelSource, settings: AgentSettings) -> None:
        self._repository = source.path
        self._revision = source.revision or _DEFAULT_REVISION
        self._endpoint = source.endpoint or None
        self._secret = SecretDir(settings.secret_dir)
        self._urls: HubApi | None = None
        bundle = bundle_path(settings.ca_file)
        if bundle is not None:
            # The only way its client can be told.
            os.environ["REQUESTS_CA_BUNDLE"] = bundle

    def list(self) -> Listing:
        """The files of the revision at this moment. Errors as `Source.list`."""
        api = self._api()
        try:
            entries = api.list_repo_files(self._repository, _MODEL, revision=self._revision)
        except HubError as error:
            raise self._failure(error) from error
        except (requests.RequestException, OSError) as error:
            raise Retryable(f"ModelScope can't be reached: {error}") from error
        except UNREADABLE as error:
            raise self._unreadable(error) from error
        # The hub ends a long listing without a word; its client walks the folders then, and may get stuck.
        if getattr(api.legacy._read_state, "listing_incomplete", False):
            raise IntegrityFault(
                f"ModelScope does not list all files of {self._repository}: a folder has more than it shows"
            )
        try:
            files = tuple(_file(entry) for entry in entries if not entry.is_dir)
        except UNREADABLE as error:
            raise self._unreadable(error) from error
        return Listing(revision=digest_of(files), files=files)

    def request(self, file: RemoteFile) -> Request:
        """The hub's URL of the file."""
        if self._urls is None:
            self._urls = self._api()
        url = self._urls.legacy.get_download_url(
            self._repository, _MODEL, str(file.path), revision=self._revision
        )
        token = self._token()
        if not token:
            return Request(url=url)
        # Older parts of the hub know the cookie, newer ones the header; its own client sends both.
        return Request(
            url=url, credentials={"Authorization": f"Bearer {token}", "Cookie": f"m_session_id={token}"}
        )

    def _api(self) -> HubApi:
        # The client would keep its session in the home directory, which a prewarm pod may not have.
        nowhere = Path("/proc/noctaya-has-no-home")
        config = HubConfig(
            endpoint=self._endpoint, token=self._token(), config_dir=nowhere, cache_dir=nowhere
        )
        return HubApi(config)

    def _token(self) -> str:
        if self._secret:
            return self._secret.need("token", "MODELSCOPE_API_TOKEN")
        return token_from_environment(variable="MODELSCOPE_API_TOKEN")

    def _unreadable(self, error: Exception) -> NetworkFault:
        return NetworkFault(
            f"ModelScope lists {self._repository}@{self._revision} in a way that is not the hub's "
            f"({type(error).__name__}); check the endpoint"
        )

    def _failure(self, error: HubError) -> Exception:
        status = error.status_code if isinstance(error, APIError) else None
        code = "" if status is None else f" {status}"
        text = f"ModelScope answers{code} for {self._repository}@{self._revision}: {error.message}"
        if isinstance(error, (AuthenticationError, PermissionDeniedError)):
            return NotAuthorised(f"{text}; {REMEDY}")
        if isinstance(error, NotExistError):
            return NotFound(f"{text}; check the name and the revision, or give a token if it is private")
        if isinstance(error, InvalidParameter):
            return BadSettings(text)
        if error.retryable:
            after = getattr(error, "retry_after", None)
            return Retryable(text, after=float(after) if after is not None else None)
        return NetworkFault(text)


def _file(entry: FileInfo) -> RemoteFile:
    digest = Digest(kind=Kind.SHA256, value=entry.sha256.lower()) if entry.sha256 else None
    pin = str(entry.blob_id or entry.last_modified or "")
    return RemoteFile(path=safe_path(entry.path), size=entry.size, digest=digest, pin=pin)
