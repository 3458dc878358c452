"""What the transfer needs of a source, and which source a URI means."""

from typing import Protocol

from noctaya_api.model_source import ModelSource, ModelSourceError, Scheme, parse_model_source

from noctaya_prewarm.errors import BadSettings
from noctaya_prewarm.listing import Listing, RemoteFile
from noctaya_prewarm.settings import AgentSettings
from noctaya_prewarm.transport import Request


class Source(Protocol):
    """A place that models come from. Both methods may be called from any thread."""

    def list(self) -> Listing:
        """Resolve the revision and list its files.

        Raises:
            Retryable: it may work later.
            PrewarmError: it will not.
        """

    def request(self, file: RemoteFile) -> Request:
        """How to ask for a file of the listing, with the credential of this moment. Raises PrewarmError."""


def parse_source(uri: str, settings: AgentSettings) -> ModelSource:
    """What `uri` means.

    Raises:
        BadSettings: it is no URI of a source that is downloaded.
    """
    try:
        source = parse_model_source(uri, endpoint=settings.endpoint)
    except ModelSourceError as error:
        raise BadSettings(str(error)) from error
    if source.scheme not in {Scheme.HF, Scheme.MODELSCOPE, Scheme.S3}:
        raise BadSettings(
            f"{uri} is nothing to download: a claim is mounted as it is, an OCI artifact is pulled and staged"
        )
    return source


def open_source(source: ModelSource, settings: AgentSettings) -> Source:
    """The source, ready to be asked.

    Raises:
        BadSettings: the extra for it isn't installed.
    """
    try:
        return _open(source, settings)
    except ImportError as error:
        extra = {Scheme.HF: "huggingface", Scheme.MODELSCOPE: "modelscope"}.get(source.scheme, "")
        raise BadSettings(
            f"{error.name} is not installed, which {source.scheme}:// needs: "
            f"pip install 'noctaya-prewarm[{extra}]'"
        ) from error


def _open(source: ModelSource, settings: AgentSettings) -> Source:
    # Each source's library costs memory and time that the others must not pay.
    if source.scheme is Scheme.HF:
        from noctaya_prewarm.sources.huggingface import HuggingFace  # noqa: PLC0415

        return HuggingFace(source, settings)
    if source.scheme is Scheme.MODELSCOPE:
        from noctaya_prewarm.sources.modelscope import ModelScope  # noqa: PLC0415

        return ModelScope(source, settings)
    from noctaya_prewarm.sources.s3 import Bucket  # noqa: PLC0415

    return Bucket(source, settings)
