import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_api.template import TemplateContext, TemplateError, render, render_args

CONTEXT = TemplateContext(model_path="/models/qwen", service_name="chat", service_namespace="team")


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("", ""),
        ("--port=8000", "--port=8000"),
        ("{{ .Model.Path }}", "/models/qwen"),
        ("{{.Model.Path}}", "/models/qwen"),
        ("{{\t.Model.Path\n}}", "/models/qwen"),
        ("{{ .Service.Name }}.{{ .Service.Namespace }}", "chat.team"),
        ("--served-model-name={{.Service.Name}}", "--served-model-name=chat"),
        # trim markers
        ("a  {{- .Service.Name }}", "achat"),
        ("{{ .Service.Name -}} \n\t b", "chatb"),
        ("a {{- .Service.Name -}} b", "achatb"),
        ("{{ .Service.Name -}}  {{- .Service.Name }}", "chatchat"),
        ("a {{ .Service.Name }} b", "a chat b"),
        # literals
        ('{{ "{{" }}', "{{"),
        ('{{"}}"}}', "}}"),
        ("{{`{{ .Model.Path }}`}}", "{{ .Model.Path }}"),
        ("{{ `a\nb` }}", "a\nb"),
        ('a {{- "{{" -}} b', "a{{b"),
        (r'{{ "a\tb\\\"\n" }}', 'a\tb\\"\n'),
        (r'{{ "\u00e9\U0001F600\x41\101" }}', "\u00e9\U0001f600AA"),
        (r'{{ "\xc3\xa9" }}', "\u00e9"),
        ('{{ "" }}', ""),
        # braces that open nothing
        ("}} { } {", "}} { } {"),
        ('{"a": {"b": 1}}', '{"a": {"b": 1}}'),
    ],
)
def test_the_subset_of_go_templates_renders_as_go_does(text: str, rendered: str) -> None:
    assert render(text, CONTEXT) == rendered


def test_r1_every_argument_is_rendered_in_order() -> None:
    runtime, override = ["serve", "{{ .Model.Path }}"], ["--name", "{{ .Service.Name }}"]
    assert render_args(runtime + override, CONTEXT) == ["serve", "/models/qwen", "--name", "chat"]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("{{ .Model.Revision }}", 4, "unknown field .Model.Revision"),
        ("{{ .Model }}", 4, "unknown field .Model"),
        ("{{ .model.path }}", 4, "unknown field .model.path"),
        ("--x={{ .Foo }}", 8, "unknown field .Foo"),
    ],
)
def test_r2_an_unknown_field_fails_and_is_named(text: str, column: int, message: str) -> None:
    with pytest.raises(TemplateError, match=message) as failed:
        render(text, CONTEXT)
    assert failed.value.column == column
    assert ".Model.Path, .Service.Name, .Service.Namespace" in str(failed.value)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("{{", 1, "not closed"),
        ("{{ .Model.Path", 1, "not closed"),
        ("ok {{ .Model.Path }", 4, "not closed"),
        ("{{}}", 1, "empty"),
        ("{{ -}}", 1, "empty"),
        ("{{ . }}", 4, "only a field or a string literal"),
        ("{{-.Model.Path}}", 3, "only a field"),
        ("{{ .Model.Path-}}", 15, "only a field"),
        ("{{ .Model.Path | printf }}", 16, "only a field"),
        ('{{ printf "%s" .Model.Path }}', 4, "only a field"),
        ("{{ if .Model.Path }}x{{ end }}", 4, "only a field"),
        ("{{/* comment */}}", 3, "only a field"),
        ("{{ 1 }}", 4, "only a field"),
        ("{{ $x }}", 4, "only a field"),
        ("{{ 'a' }}", 4, "only a field"),
        ("{{ .Model.Path .Model.Path }}", 16, "only a field"),
        ('{{ "a }}', 4, "literal is not closed"),
        ("{{ `a }}", 4, "literal is not closed"),
        (r'{{ "\q" }}', 5, "unknown escape"),
        (r'{{ "\ud800" }}', 5, "not a Unicode character"),
        (r'{{ "\xff" }}', 4, "not valid UTF-8"),
    ],
)
def test_everything_else_of_the_language_fails_and_names_the_place(
    text: str, column: int, message: str
) -> None:
    with pytest.raises(TemplateError, match=message) as failed:
        render(text, CONTEXT)
    assert failed.value.column == column


def test_a_failure_in_a_list_names_the_argument() -> None:
    with pytest.raises(TemplateError) as failed:
        render_args(["serve", "--x={{ .Foo }}"], CONTEXT)
    assert failed.value.index == 1
    assert str(failed.value).startswith("argument 1 '--x={{ .Foo }}', character 8: unknown field .Foo")


@given(st.text(alphabet='ab{}-"` .\\\n', max_size=20))
def test_any_text_renders_or_fails_with_a_place_inside_it(text: str) -> None:
    try:
        rendered = render(text, CONTEXT)
    except TemplateError as error:
        assert 1 <= error.column <= len(text) + 1
    else:
        assert "{{" in text or rendered == text


@given(st.text(max_size=30))
def test_any_text_can_be_written_as_a_literal(text: str) -> None:
    quoted = "".join(f"\\U{ord(character):08x}" for character in text)
    assert render(f'{{{{ "{quoted}" }}}}', CONTEXT) == text
