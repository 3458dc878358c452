"""Manifest files to models, with every problem named: file, line, document, object and field.

Stricter than the models alone and as strict as kubectl: a field that doesn't exist is an error, not
ignored, because it is nearly always a typing mistake. Objects of other APIs may stand in the same files;
they are noted and left alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, Final

from pydantic import ValidationError

from noctaya_api.names import API_VERSION, GROUP, INFERENCE_RUNTIME_KIND, LLMSERVICE_KIND
from noctaya_api.preflight import Finding, preflight_runtime, preflight_service
from noctaya_api.structural import Path, Schema, schema_at, structural_schema, unknown_fields
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from noctaya_api.yaml_documents import Document, YamlError, read_documents

LARGEST_FILE: Final = 1 << 20
"""Bytes of one file: an object in a cluster can't be larger, and no reader is kept busy for minutes."""
_LONGEST: Final = 500


@dataclass(frozen=True, kw_only=True)
class Note:
    """Something to say about a place in a manifest."""

    file: str
    message: str
    line: int = 0
    """Line from 1; 0 when the file as a whole is meant."""
    document: int = 0
    """Document from 1; 0 when the file as a whole is meant."""
    object: str = ""
    """`Kind/name`, as far as known."""
    field: str = ""
    """Path such as `spec.container.env[0].name`."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        if self.document:
            place += f" (document {self.document})"
        where = " ".join(part for part in (place, self.object, self.field) if part)
        return printable(f"{where}: {self.message}")


class ManifestError(ValueError):
    """At least one manifest is wrong; `problems` holds everything that was found, in reading order."""

    def __init__(self, problems: Iterable[Note]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


@dataclass(frozen=True, kw_only=True)
class Manifests:
    """The objects of a set of files, in reading order."""

    services: tuple[LLMService, ...]
    runtimes: tuple[InferenceRuntime, ...]
    notes: tuple[Note, ...]
    """Objects that were left alone because they are not Noctaya's."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Where each object stands, as `file:line`, by `Kind/name`; the first when namespaces share a name."""


_MODELS: Final[Mapping[str, type[LLMService] | type[InferenceRuntime]]] = {
    LLMSERVICE_KIND: LLMService,
    INFERENCE_RUNTIME_KIND: InferenceRuntime,
}
_SUFFIXES: Final = {".yaml", ".yml", ".json"}
# Metadata is known to the API server, not to the schemas; these are the fields a manifest may carry.
_METADATA: Final[Schema] = {
    "properties": {
        name: {}
        for name in (
            "name",
            "namespace",
            "labels",
            "annotations",
            "generateName",
            "uid",
            "generation",
            "resourceVersion",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "finalizers",
            "ownerReferences",
            "managedFields",
            "selfLink",
        )
    }
}


def load_manifests(paths: Iterable[FilePath | str]) -> Manifests:
    """Read files, and directories of .yaml, .yml and .json files.

    Raises ManifestError with every problem of every file.
    """
    loading = _Loading()
    for path in paths:
        for file in _files(FilePath(path)):
            loading.read(file)
    if loading.problems:
        raise ManifestError(loading.problems)
    return Manifests(
        services=tuple(loading.services),
        runtimes=tuple(loading.runtimes),
        notes=tuple(loading.notes),
        places={note.object: f"{note.file}:{note.line}" for note in reversed(loading.seen.values())},
    )


def _files(path: FilePath) -> Iterator[FilePath]:
    if not path.is_dir():
        yield path
        return
    yield from sorted(entry for entry in path.iterdir() if entry.suffix in _SUFFIXES and entry.is_file())


@dataclass(kw_only=True)
class _Object:
    """One object of a document, which for a List is one of its items."""

    file: str
    document: Document
    prefix: Path
    value: dict[str, Any]

    @property
    def identity(self) -> str:
        metadata = self.value.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return "/".join(str(part) for part in (self.value.get("kind"), name) if part)

    def note(self, message: str, path: Path = ()) -> Note:
        return Note(
            file=self.file,
            line=self.document.line_of((*self.prefix, *path)),
            document=self.document.number,
            object=self.identity,
            field=format_path(path),
            message=message,
        )


@dataclass(kw_only=True)
class _Loading:
    problems: list[Note] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    services: list[LLMService] = field(default_factory=list)
    runtimes: list[InferenceRuntime] = field(default_factory=list)
    seen: dict[tuple[str, str, str], Note] = field(default_factory=dict)
    schemas: dict[str, Schema] = field(default_factory=dict)

    def read(self, file: FilePath) -> None:
        try:
            for document in read_documents(_text(file)):
                self._document(str(file), document)
        except YamlError as problem:
            self.problems.append(Note(file=str(file), line=problem.line, message=problem.message))
        except OSError as error:
            self.problems.append(Note(file=str(file), message=f"can't be read: {error.strerror or error}"))
        except _Unusable as problem:
            self.problems.append(Note(file=str(file), message=str(problem)))

    def _document(self, file: str, document: Document, prefix: Path = (), value: Any = None) -> None:
        value = document.value if value is None else value
        if not isinstance(value, dict):
            line = document.line_of(prefix)
            message = "a manifest must be an object with apiVersion and kind"
            self.problems.append(Note(file=file, line=line, document=document.number, message=message))
            return
        if value.get("apiVersion") == "v1" and value.get("kind") == "List":
            for index, item in enumerate(value.get("items") or []):
                self._document(file, document, (*prefix, "items", index), item)
            return
        self._object(_Object(file=file, document=document, prefix=prefix, value=value))

    def _object(self, found: _Object) -> None:
        version, kind = found.value.get("apiVersion"), found.value.get("kind")
        missing = [name for name in ("apiVersion", "kind") if not isinstance(found.value.get(name), str)]
        if missing:
            self.problems.extend(found.note("is required and must be text", (name,)) for name in missing)
        elif version == API_VERSION and kind in _MODELS:
            self._model(found, _MODELS[str(kind)])
        elif kind in _MODELS:
            self.problems.append(found.note(f"{version} should be {API_VERSION}", ("apiVersion",)))
        elif str(version).split("/")[0] == GROUP:
            known = " and ".join(_MODELS)
            self.problems.append(found.note(f"{kind} is no kind of {version}; known are {known}", ("kind",)))
        else:
            self.notes.append(found.note(f"ignored: {version} is not an API of Noctaya"))

    def _model(self, found: _Object, model: type[LLMService] | type[InferenceRuntime]) -> None:
        schema = self._schema(model)
        problems = [found.note(_unknown(schema, path), path) for path in unknown_fields(schema, found.value)]
        try:
            parsed = model.model_validate(found.value)
        except ValidationError as error:
            problems += [found.note(_message(item), item["loc"]) for item in error.errors()]
        else:
            problems += [found.note(message, path) for path, message in _preflight(parsed)]
            problems += self._duplicate(found, parsed)
            if isinstance(parsed, LLMService):
                self.services.append(parsed)
            else:
                self.runtimes.append(parsed)
        self.problems += problems

    def _duplicate(self, found: _Object, parsed: LLMService | InferenceRuntime) -> list[Note]:
        namespace = parsed.namespace if isinstance(parsed, LLMService) else ""
        here = found.note("")
        first = self.seen.setdefault((parsed.kind, namespace, parsed.name), here)
        if first is here:
            return []
        message = f"the same object stands at {first.file}:{first.line} already"
        return [found.note(message, ("metadata", "name"))]

    def _schema(self, model: type[LLMService] | type[InferenceRuntime]) -> Schema:
        name = model.__name__
        if name not in self.schemas:
            schema = structural_schema(model)
            schema["properties"]["metadata"] = _METADATA
            self.schemas[name] = schema
        return self.schemas[name]


class _Unusable(ValueError):
    """A file that can't hold manifests."""


def _text(file: FilePath) -> str:
    with file.open("rb") as opened:
        content = opened.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise _Unusable("is larger than 1 MiB; keep the manifests of Noctaya in files of their own")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _Unusable("is not UTF-8 text") from None


def _preflight(parsed: LLMService | InferenceRuntime) -> Iterable[Finding]:
    return preflight_service(parsed) if isinstance(parsed, LLMService) else preflight_runtime(parsed)


def _unknown(schema: Schema, path: Path) -> str:
    known = schema_at(schema, path[:-1]).get("properties", {})
    close = difflib.get_close_matches(str(path[-1]), known, n=1)
    return f"unknown field; did you mean {close[0]}?" if close else "unknown field"


def _message(item: Mapping[str, Any]) -> str:
    if item["type"] == "missing":
        return "is required"
    message = str(item["msg"]).removeprefix("Value error, ")
    return message.replace("Input should be", "must be").replace("Input must be", "must be")


def format_path(path: Path) -> str:
    """A path as people write it: `spec.container.env[0].name`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")


def printable(text: str) -> str:
    """One line for a terminal: control characters of a manifest written out, the end of a huge value cut."""
    shown = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
