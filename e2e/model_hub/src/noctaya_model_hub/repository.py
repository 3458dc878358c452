"""Repositories as a hub keeps them: commits that never change, and names that point to them and may move."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from noctaya_model_hub.content import Content, as_contents, git_sha1, sha256
from noctaya_model_hub.faults import Faults
from noctaya_model_hub.log import RequestLog
from noctaya_model_hub.registry import Artifacts
from noctaya_model_hub.sts import Lender

DEFAULT_BRANCHES = ("main", "master")
"""Hugging Face's and ModelScope's default branch; both names always point to the same commit."""
_LARGE = 10_000_000
_LARGE_SUFFIXES = (".safetensors", ".bin", ".gguf", ".pt", ".onnx")


@dataclass(frozen=True, kw_only=True)
class Commit:
    """One state of a repository."""

    sha: str
    files: Mapping[str, Content]


def is_large(path: str, content: Content) -> bool:
    """Whether a hub keeps the file outside git (LFS): then its ETag is a SHA-256 and a CDN serves it."""
    return path.endswith(_LARGE_SUFFIXES) or content.size > _LARGE


@dataclass(kw_only=True)
class Repository:
    """One repository.

    Attributes:
        gated: the listing is public, the files are only given to `allowed` tokens.
        private: without an allowed token the repository does not exist.
        allowed: tokens with access.
        commits: all commits by their hash; every one can be downloaded for ever.
        refs: branches and tags.
    """

    name: str
    gated: bool = False
    private: bool = False
    allowed: frozenset[str] = frozenset()
    commits: dict[str, Commit] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    tags: set[str] = field(default_factory=set)

    def commit(self, files: Mapping[str, Content | bytes | str], *, branch: str = "main") -> Commit:
        """Add a commit that holds exactly `files` and move the branch to it."""
        contents = as_contents(files)
        tree = {path: git_sha1(content) for path, content in sorted(contents.items())}
        text = json.dumps([self.name, len(self.commits), tree])
        made = Commit(sha=hashlib.sha1(text.encode()).hexdigest(), files=contents)
        self.commits[made.sha] = made
        self.point(branch, made.sha)
        return made

    def tag(self, name: str, sha: str) -> None:
        """Give a commit a name that doesn't move with the branch."""
        self.tags.add(name)
        self.refs[name] = sha

    def point(self, ref: str, sha: str) -> None:
        """Move a branch to a commit."""
        for name in DEFAULT_BRANCHES if ref in DEFAULT_BRANCHES else (ref,):
            self.refs[name] = sha

    def find(self, revision: str) -> Commit | None:
        """The commit that a branch, a tag or a commit hash names now; None when nothing is called so."""
        return self.commits.get(self.refs.get(revision, revision))

    def content_with(self, digest: str) -> tuple[str, Content] | None:
        """Path and content of a large file by its SHA-256, in any commit."""
        for commit in self.commits.values():
            for path, content in commit.files.items():
                if is_large(path, content) and sha256(content) == digest:
                    return path, content
        return None


@dataclass(kw_only=True)
class Hub:
    """All that the hub serves, and how it misbehaves.

    Attributes:
        tokens: tokens that belong to somebody; any other is refused as invalid.
        page_size: entries on one page of a Hugging Face tree listing.
        truncate_at: entries after which ModelScope's listing silently ends (the real one: 3,000).
        small_redirects: whether small files too are answered with a redirect (a relative one), as really.
    """

    repositories: dict[str, Repository] = field(default_factory=dict)
    buckets: dict[str, dict[str, Content]] = field(default_factory=dict)
    s3_keys: dict[str, str] = field(default_factory=dict)
    lender: Lender = field(default_factory=Lender)
    artifacts: dict[str, Artifacts] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    page_size: int = 1000
    truncate_at: int = 3000
    small_redirects: bool = True
    faults: Faults = field(default_factory=Faults)
    requests: RequestLog = field(default_factory=RequestLog)

    def create(
        self,
        name: str,
        files: Mapping[str, Content | bytes | str],
        *,
        gated: bool = False,
        private: bool = False,
        tokens: Iterable[str] = (),
    ) -> Repository:
        """Make a repository `organisation/name` with one commit on its branch, replacing an older one.

        `tokens` are the ones with access; they become valid.
        """
        allowed = frozenset(tokens)
        self.tokens |= allowed
        made = Repository(name=name, gated=gated, private=private, allowed=allowed)
        made.commit(files)
        self.repositories[name] = made
        return made

    def bucket(self, name: str, objects: Mapping[str, Content | bytes | str]) -> dict[str, Content]:
        """Make an S3 bucket; the returned mapping from key to content may be changed."""
        made = as_contents(objects)
        self.buckets[name] = made
        return made

    def artifact(
        self,
        name: str,
        files: Mapping[str, Content | bytes | str],
        *,
        tag: str = "latest",
        users: Mapping[str, str] | None = None,
    ) -> str:
        """Push files as an OCI artifact to a repository, which gets these users if any are given.

        Returns:
            The digest, with its algorithm.
        """
        repository = self.artifacts.setdefault(name, Artifacts())
        if users is not None:
            repository.users = users
        return repository.push(as_contents(files), tag=tag)
