"""Hugging Face: its own client resolves the revision and lists the files; the files are fetched by us."""

import logging
from typing import Any

import httpx2
from huggingface_hub import HfApi, constants, hf_hub_url, set_client_factory
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile
from noctaya_api.model_source import ModelSource

from noctaya_prewarm.answers import REMEDY, UNREADABLE, explanation
from noctaya_prewarm.digest import Digest, Kind
from noctaya_prewarm.errors import BadSettings, NetworkFault, NotAuthorised, NotFound, PrewarmError
from noctaya_prewarm.listing import Listing, RemoteFile
from noctaya_prewarm.retry import Retryable, asked_pause
from noctaya_prewarm.safe_path import safe_path
from noctaya_prewarm.secret import SecretDir, token_from_environment
from noctaya_prewarm.settings import AgentSettings
from noctaya_prewarm.transport import Request
from noctaya_prewarm.trust import tls_context

_TIMEOUT = 30.0
_LATER = frozenset({408, 429})


class HuggingFace:
    """One repository of the Hugging Face Hub or of a mirror of it.

    The token is that of the Secret (`token` or `HF_TOKEN`), else the file of HF_TOKEN_PATH, else HF_TOKEN or
    HUGGING_FACE_HUB_TOKEN.
    """

    def __init__(self, source: ModelSource, settings: AgentSettings) -> None:
        self._repository = source.path
        self._revision = source.revision or constants.DEFAULT_REVISION
        self._endpoint = (source.endpoint or constants.ENDPOINT).rstrip("/")
        self._secret = SecretDir(settings.secret_dir)
        # A line for each request says nothing that the listing doesn't.
        logging.getLogger("httpx2").setLevel(logging.WARNING)
        context = tls_context(settings.ca_file)
        set_client_factory(lambda: httpx2.Client(verify=context, timeout=_TIMEOUT, follow_redirects=True))

    def list(self) -> Listing:
        """The files of the revision's commit. Errors as `Source.list`."""
        api = HfApi(endpoint=self._endpoint, token=self._token() or False)
        try:
            commit = api.model_info(self._repository, revision=self._revision).sha
            if not commit or not isinstance(commit, str):
                raise NetworkFault(f"{self._endpoint} does not tell the commit of {self._revision}")
            entries = list(api.list_repo_tree(self._repository, recursive=True, revision=commit))
        except HFValidationError as error:
            raise BadSettings(f"hf://{self._repository} is no repository id: {error}") from error
        except OfflineModeIsEnabled as error:
            raise BadSettings("HF_HUB_OFFLINE is set; a prewarm needs the hub") from error
        except HfHubHTTPError as error:
            raise self._failure(error) from error
        except (httpx2.TransportError, OSError) as error:
            raise _unreachable(self._endpoint, error) from error
        except UNREADABLE as error:
            raise self._unreadable(error) from error
        try:
            files = tuple(_file(entry, commit) for entry in entries if isinstance(entry, RepoFile))
        except UNREADABLE as error:
            raise self._unreadable(error) from error
        return Listing(revision=commit, files=files)

    def request(self, file: RemoteFile) -> Request:
        """The hub's URL of the file at the listed commit, which `pin` holds."""
        url = hf_hub_url(self._repository, str(file.path), revision=file.pin, endpoint=self._endpoint)
        token = self._token()
        return Request(url=url, credentials={"Authorization": f"Bearer {token}"} if token else {})

    def _token(self) -> str:
        if self._secret:
            return self._secret.need("token", "HF_TOKEN")
        found = token_from_environment(variable="HF_TOKEN", path_variable="HF_TOKEN_PATH")
        # The variable's name in older runtimes' environments.
        return found or token_from_environment(variable="HUGGING_FACE_HUB_TOKEN")

    def _unreadable(self, error: Exception) -> NetworkFault:
        return NetworkFault(
            f"{self._endpoint} lists {self._repository}@{self._revision} in a way that is not the hub's "
            f"({type(error).__name__}); check the endpoint"
        )

    def _failure(self, error: HfHubHTTPError) -> Exception:
        response: Any = error.response
        status: int = response.status_code
        headers = {name.lower(): value for name, value in response.headers.items()}
        text = (
            f"{self._endpoint} answers {status}{explanation(headers)} for {self._repository}@{self._revision}"
        )
        if status in _LATER or status >= 500:
            return Retryable(text, after=asked_pause(headers))
        if isinstance(error, GatedRepoError) or status in {401, 403}:
            unknown = " (the hub answers so for unknown names, too)" if status == 401 else ""
            return NotAuthorised(f"{text}{unknown}; {REMEDY}")
        if isinstance(error, (RepositoryNotFoundError, RevisionNotFoundError)) or status == 404:
            return NotFound(f"{text}; check the name and the revision")
        return NetworkFault(text)


def _file(entry: RepoFile, commit: str) -> RemoteFile:
    if entry.lfs is not None:
        digest = Digest(kind=Kind.SHA256, value=entry.lfs.sha256)
        return RemoteFile(path=safe_path(entry.path), size=entry.lfs.size, digest=digest, pin=commit)
    digest = Digest(kind=Kind.GIT_SHA1, value=entry.blob_id)
    return RemoteFile(path=safe_path(entry.path), size=entry.size, digest=digest, pin=commit)


def _unreachable(endpoint: str, error: Exception) -> PrewarmError | Retryable:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return NetworkFault(
            f"the certificate of {endpoint} is not trusted; for a private authority set "
            f"NOCTAYA_PREWARM_CA_FILE or SSL_CERT_FILE to its PEM file ({error})"
        )
    return Retryable(f"{endpoint} can't be reached: {error or type(error).__name__}")
