from pathlib import Path
from textwrap import dedent

import pytest
from noctaya_api.manifests import ManifestError, Manifests, format_path, load_manifests

SERVICE = """
apiVersion: serving.noctaya.io/v1alpha1
kind: LLMService
metadata:
  name: chat
spec:
  model:
    source:
      uri: hf://org/model
  runtime:
    name: local
"""
RUNTIME = """
apiVersion: serving.noctaya.io/v1alpha1
kind: InferenceRuntime
metadata:
  name: local
spec:
  vendor: cpu
  container:
    image: local
    args: ["{{ .Model.Path }}"]
    port: {}
"""


def load(tmp_path: Path, *texts: str) -> Manifests:
    files = []
    for number, text in enumerate(texts):
        files.append(tmp_path / f"{number}.yaml")
        files[-1].write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    return load_manifests(files)


def problems(tmp_path: Path, *texts: str) -> list[str]:
    with pytest.raises(ManifestError) as failed:
        load(tmp_path, *texts)
    return [str(problem).removeprefix(f"{tmp_path}/") for problem in failed.value.problems]


def test_documents_of_both_kinds_become_models_in_reading_order(tmp_path: Path) -> None:
    second = SERVICE.replace("name: chat", "name: code")
    found = load(tmp_path, f"{SERVICE}---\n{RUNTIME}---\n# nothing\n---\n{second}")
    assert [service.name for service in found.services] == ["chat", "code"]
    assert [runtime.name for runtime in found.runtimes] == ["local"]
    assert found.notes == ()
    assert found.services[0].spec.scaling.max == 1


def test_an_unknown_field_is_an_error_with_line_and_suggestion(tmp_path: Path) -> None:
    assert problems(tmp_path, f"{SERVICE}  scaling:\n    maxx: 3\n") == [
        "0.yaml:12 (document 1) LLMService/chat spec.scaling.maxx: unknown field; did you mean max?"
    ]


def test_an_unknown_field_like_no_other_is_an_error_too(tmp_path: Path) -> None:
    assert problems(tmp_path, f"{SERVICE}  hobbies: []\n") == [
        "0.yaml:11 (document 1) LLMService/chat spec.hobbies: unknown field"
    ]


def test_unknown_fields_of_metadata_and_lists_are_found(tmp_path: Path) -> None:
    text = (
        RUNTIME.replace("name: local\nspec", "name: local\n  lables: {}\nspec") + "    env:\n    - nam: A\n"
    )
    assert problems(tmp_path, text) == [
        "0.yaml:5 (document 1) InferenceRuntime/local metadata.lables: unknown field; did you mean labels?",
        "0.yaml:13 (document 1) InferenceRuntime/local spec.container.env[0].nam: unknown field; "
        "did you mean name?",
        "0.yaml:13 (document 1) InferenceRuntime/local spec.container.env[0].name: is required",
    ]


def test_snake_case_is_not_another_spelling_of_a_field(tmp_path: Path) -> None:
    assert problems(tmp_path, f"{SERVICE}  endpoint:\n    max_queue: 3\n") == [
        "0.yaml:12 (document 1) LLMService/chat spec.endpoint.max_queue: unknown field; did you mean "
        "maxQueue?"
    ]


def test_a_wrong_value_is_named_by_file_document_object_and_field(tmp_path: Path) -> None:
    text = f"{RUNTIME}---{SERVICE}  scaling:\n    target: 0\n    activationTimeout: 5 minutes\n"
    assert problems(tmp_path, text) == [
        "0.yaml:23 (document 2) LLMService/chat spec.scaling.target: must be greater than or equal to 1",
        "0.yaml:24 (document 2) LLMService/chat spec.scaling.activationTimeout: "
        "'5 minutes' has the unknown unit ' minutes'; use h, m, s, ms, us or ns",
    ]


def test_a_missing_field_points_at_the_object_around_it(tmp_path: Path) -> None:
    assert problems(tmp_path, RUNTIME.replace("    port: {}\n", "")) == [
        "0.yaml:7 (document 1) InferenceRuntime/local spec.container.port: is required"
    ]


def test_a_broken_rule_is_told_in_its_own_words(tmp_path: Path) -> None:
    assert problems(tmp_path, f"{SERVICE}  scaling: {{min: 2}}\n") == [
        "0.yaml:11 (document 1) LLMService/chat spec.scaling: min must not be greater than max, which is "
        "1 unless given"
    ]


def test_a_name_that_cannot_become_a_service_is_refused(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, SERVICE.replace("name: chat", "name: qwen2.5"))
    assert problem.startswith("0.yaml:1 (document 1) LLMService/qwen2.5: metadata.name must begin with")


def test_the_same_object_twice_is_an_error_that_names_the_first(tmp_path: Path) -> None:
    other_namespace = SERVICE.replace("name: chat", "name: chat\n  namespace: team")
    in_default = SERVICE.replace("name: chat", "name: chat\n  namespace: default")
    assert problems(tmp_path, SERVICE, other_namespace, in_default) == [
        f"2.yaml:4 (document 1) LLMService/chat metadata.name: the same object stands at "
        f"{tmp_path}/0.yaml:1 already"
    ]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (
            "apiVersion: serving.noctaya.io/v1\nkind: LLMService\n",
            "0.yaml:1 (document 1) LLMService apiVersion: "
            "serving.noctaya.io/v1 should be serving.noctaya.io/v1alpha1",
        ),
        (
            "apiVersion: v1\nkind: InferenceRuntime\n",
            "0.yaml:1 (document 1) InferenceRuntime apiVersion: v1 should be serving.noctaya.io/v1alpha1",
        ),
        (
            "apiVersion: serving.noctaya.io/v1alpha1\nkind: LlmService\n",
            "0.yaml:2 (document 1) LlmService kind: LlmService is no kind of serving.noctaya.io/v1alpha1; "
            "known are LLMService and InferenceRuntime",
        ),
        ("kind: LLMService\n", "0.yaml:1 (document 1) LLMService apiVersion: is required and must be text"),
        ("apiVersion: 1\nkind: A\n", "0.yaml:1 (document 1) A apiVersion: is required and must be text"),
        ("just text\n", "0.yaml:1 (document 1): a manifest must be an object with apiVersion and kind"),
    ],
)
def test_an_object_that_is_not_what_it_should_be_is_an_error(
    head: str, expected: str, tmp_path: Path
) -> None:
    assert problems(tmp_path, head) == [expected]


def test_objects_of_other_apis_are_noted_and_left_alone(tmp_path: Path) -> None:
    found = load(tmp_path, f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\n---{SERVICE}")
    assert [str(note).removeprefix(f"{tmp_path}/") for note in found.notes] == [
        "0.yaml:1 (document 1) Secret/s: ignored: v1 is not an API of Noctaya"
    ]
    assert len(found.services) == 1


def test_the_items_of_a_list_are_objects(tmp_path: Path) -> None:
    items = "".join(
        f"- {text.strip()}\n".replace("\n", "\n  ").rstrip() + "\n" for text in (RUNTIME, SERVICE)
    )
    found = load(tmp_path, f"apiVersion: v1\nkind: List\nitems:\n{items}")
    assert (len(found.services), len(found.runtimes)) == (1, 1)
    wrong = items.replace("port: {}", "prt: {}").replace("uri:", "url:")
    found_problems = problems(tmp_path, f"apiVersion: v1\nkind: List\nitems:\n{wrong}")
    assert [problem.split(" ")[0] + " " + problem.split(" ")[4] for problem in found_problems] == [
        "0.yaml:13 spec.container.prt:",
        "0.yaml:10 spec.container.port:",
        "0.yaml:21 spec.model.source.url:",
        "0.yaml:20 spec.model.source.uri:",
    ]


def test_a_syntax_error_names_its_line_and_keeps_the_other_problems(tmp_path: Path) -> None:
    found = problems(tmp_path, f"{SERVICE}  hobbies: []\n---\na: [1\nb: 2\n", "a: 1\na: 2\n")
    assert found[0] == "0.yaml:11 (document 1) LLMService/chat spec.hobbies: unknown field"
    assert found[1].startswith("0.yaml:14: while parsing a flow sequence")
    assert found[2] == "1.yaml:2: the field 'a' is given twice"


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ManifestError) as failed:
        load_manifests([tmp_path / "absent.yaml", binary])
    assert [(problem.file, problem.message) for problem in failed.value.problems] == [
        (str(tmp_path / "absent.yaml"), "can't be read: No such file or directory"),
        (str(binary), "is not UTF-8 text"),
    ]


def test_a_directory_means_its_yaml_and_json_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SERVICE, encoding="utf-8")
    (tmp_path / "b.yml").write_text(RUNTIME, encoding="utf-8")
    (tmp_path / "README.md").write_text("# not a manifest", encoding="utf-8")
    (tmp_path / "c.json").write_text('{"apiVersion": "v1", "kind": "Pod"}', encoding="utf-8")
    found = load_manifests([tmp_path])
    assert (len(found.services), len(found.runtimes), len(found.notes)) == (1, 1, 1)


def test_what_no_operator_could_render_is_found_before_it_runs(tmp_path: Path) -> None:
    text = SERVICE.replace("hf://org/model", "gs://bucket/key")
    (problem,) = problems(tmp_path, text)
    assert problem.startswith("0.yaml:8 (document 1) LLMService/chat spec.model.source.uri: model URI")


def test_paths_are_written_as_people_write_them() -> None:
    assert format_path(("spec", "container", "env", 0, "name")) == "spec.container.env[0].name"
    assert format_path(()) == ""


def test_a_file_that_no_manifest_needs_is_not_read_to_its_end(tmp_path: Path) -> None:
    assert problems(tmp_path, SERVICE + "# é\n" * 400_000) == [
        "0.yaml: is larger than 1 MiB; keep the manifests of Noctaya in files of their own"
    ]


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    file = tmp_path / "windows.yaml"
    file.write_bytes(("\ufeff" + SERVICE.lstrip("\n").replace("\n", "\r\n")).encode())
    assert [service.name for service in load_manifests([file]).services] == ["chat"]


def test_a_message_never_controls_the_terminal_and_never_floods_it(tmp_path: Path) -> None:
    (shown,) = problems(tmp_path, SERVICE.replace("name: chat", 'name: "\\e[31mred"'))
    assert r"LLMService/\x1b[31mred" in shown
    (shown,) = problems(tmp_path, SERVICE + "  " + "x" * 5000 + ": 1\n")
    assert len(shown) < 600
