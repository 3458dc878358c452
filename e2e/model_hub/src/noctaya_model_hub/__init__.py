"""A stand-in for the places models come from: Hugging Face, ModelScope and S3, with faults as data.

Tests serve a `Hub` in their own event loop with `running_hub`; `python -m noctaya_model_hub` serves one as a
process, which is what runs inside the end-to-end cluster.
"""

from noctaya_model_hub.content import Content, Inline, OnDisk, Pattern, git_sha1, md5, sha256
from noctaya_model_hub.faults import Effect, Fault, Faults, Match, too_many
from noctaya_model_hub.log import Seen
from noctaya_model_hub.repository import Commit, Hub, Repository
from noctaya_model_hub.serving import Addresses, Served, running_hub

__all__ = [
    "Addresses",
    "Commit",
    "Content",
    "Effect",
    "Fault",
    "Faults",
    "Hub",
    "Inline",
    "Match",
    "OnDisk",
    "Pattern",
    "Repository",
    "Seen",
    "Served",
    "git_sha1",
    "md5",
    "running_hub",
    "sha256",
    "too_many",
]
