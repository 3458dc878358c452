"""Pull secrets (M5): every plain form works, the rest is an error that names the entry and no secret."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_prewarm.dockerconfig import (
    DOCKER_HUB,
    Credential,
    find_credential,
    minimal_config,
)
from noctaya_prewarm.errors import BadSettings

SECRET = "s3cr3t-Pa:ss"


def encoded(user: str = "user", password: str = SECRET) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()


def find(config: Any, *, registry: str = "reg.example:5000", repository: str = "team/model") -> Credential:
    content = config if isinstance(config, bytes) else json.dumps(config).encode()
    return find_credential(content, registry=registry, repository=repository)


USER = Credential(username="user", password=SECRET)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"auth": encoded()}, USER),
        ({"auth": encoded().rstrip("=")}, USER),
        ({"auth": encoded()[:8] + "\n" + encoded()[8:] + "\n"}, USER),
        ({"auth": encoded(password=SECRET + "\0\0")}, USER),
        ({"username": "user", "password": SECRET}, USER),
        ({"username": "user", "password": SECRET, "auth": "", "email": "x@y"}, USER),
        ({"username": "old", "password": "old", "auth": encoded()}, USER),
        ({"auth": encoded("ü", "pä")}, Credential(username="ü", password="pä")),
        ({"auth": encoded("u", "")}, Credential(username="u", identity_token="t")),
        ({"identitytoken": "t"}, Credential(identity_token="t")),
        ({"username": "<token>", "identitytoken": "t"}, Credential(username="<token>", identity_token="t")),
        ({"registrytoken": "t"}, Credential(registry_token="t")),
    ],
)
def test_m5_every_plain_form_of_an_entry_works(entry: dict[str, str], expected: Credential) -> None:
    if expected == Credential(username="u", identity_token="t"):
        entry = {**entry, "identitytoken": "t"}
    assert find({"auths": {"reg.example:5000": entry}}) == expected


@pytest.mark.parametrize(
    "key",
    [
        "reg.example:5000",
        "https://reg.example:5000",
        "http://reg.example:5000/",
        "HTTPS://Reg.Example:5000/v2/",
        "https://reg.example:5000/v1/",
        "reg.example:5000/team",
        "reg.example:5000/team/model",
        "https://reg.example:5000/v2/team/",
        "*.example:5000",
        "r?g.example:5000",
    ],
)
def test_m5_every_way_to_write_the_host_works(key: str) -> None:
    assert find({"auths": {key: {"auth": encoded()}}}) == USER


@pytest.mark.parametrize(
    "key",
    [
        "reg.example",
        "reg.example:5001",
        "other.reg.example:5000",
        "example:5000",
        "reg.example:5000/tea",
        "reg.example:5000/team/model/x",
        "*.reg.example:5000",
        "*",
        "",
    ],
)
def test_an_entry_of_another_place_is_not_used(key: str) -> None:
    with pytest.raises(BadSettings, match=r"no entry for reg\.example:5000; it has"):
        find({"auths": {key: {"auth": encoded()}}})


@pytest.mark.parametrize(
    "key", ["https://index.docker.io/v1/", "docker.io", "index.docker.io", "registry-1.docker.io"]
)
@pytest.mark.parametrize("registry", ["docker.io", "registry-1.docker.io", "index.docker.io"])
def test_docker_hub_has_many_names(key: str, registry: str) -> None:
    found = find({"auths": {key: {"auth": encoded()}}}, registry=registry)
    assert found == USER
    assert list(json.loads(minimal_config(found, registry=registry))["auths"]) == [DOCKER_HUB]


def test_the_longest_path_wins_wherever_it_stands() -> None:
    keys = [
        "reg.example:5000/team/model",
        "reg.example:5000",
        "*.example:5000/team/model",
        "reg.example:5000/team",
    ]
    for turn in range(len(keys)):
        turned = keys[turn:] + keys[:turn]
        auths = {key: {"username": "u", "password": key} for key in turned}
        assert find({"auths": auths}).password == "reg.example:5000/team/model"
        assert find({"auths": auths}, repository="team/other").password == "reg.example:5000/team"
        assert find({"auths": auths}, repository="else").password == "reg.example:5000"


def test_an_empty_entry_gives_way_to_one_that_has_something() -> None:
    auths = {"reg.example:5000/team": {}, "reg.example:5000": {"auth": encoded()}}
    assert find({"auths": auths}) == USER


def test_the_old_flat_form_works() -> None:
    assert find({"reg.example:5000": {"auth": encoded(), "email": "a@b"}}) == USER


def test_a_plain_entry_is_used_even_if_a_helper_is_named() -> None:
    config = {"auths": {"reg.example:5000": {"auth": encoded()}}, "credsStore": "desktop"}
    assert find(config) == USER


@pytest.mark.parametrize(
    ("config", "helper"),
    [
        ({"credsStore": "desktop"}, "docker-credential-desktop"),
        ({"auths": {"reg.example:5000": {}}, "credsStore": "osxkeychain"}, "docker-credential-osxkeychain"),
        ({"credHelpers": {"reg.example:5000": "ecr-login"}}, "docker-credential-ecr-login"),
        ({"auths": None, "credHelpers": {"*.example:5000": "gcloud"}}, "docker-credential-gcloud"),
    ],
)
def test_m5_a_helper_only_secret_is_an_error_that_names_the_helper(
    config: dict[str, Any], helper: str
) -> None:
    with pytest.raises(BadSettings, match=f"{helper}.*kubectl create secret docker-registry"):
        find(config)


def test_a_helper_of_another_registry_is_not_blamed() -> None:
    with pytest.raises(BadSettings, match="no entry for"):
        find({"credHelpers": {"gcr.io": "gcloud"}})


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "the file must be a JSON object"),
        (b'"text"', "the file must be a JSON object"),
        ({"auths": []}, "auths must be a JSON object"),
        ({"auths": {"reg.example:5000": "x"}}, "entry 'reg.example:5000' must be a JSON object"),
        ({"auths": {"reg.example:5000": {"auth": 5}}}, "auth of entry 'reg.example:5000' must be text"),
        ({"auths": {"reg.example:5000": {"auth": "%%%"}}}, "auth of entry 'reg.example:5000' is not base64"),
        ({"auths": {"reg.example:5000": {"auth": "/w=="}}}, "is not base64 of text"),
        ({"auths": {"reg.example:5000": {"auth": "dXNlcg=="}}}, "must be base64 of username:password"),
        ({"auths": {"reg.example:5000": {"auth": "OnB3"}}}, "must be base64 of username:password"),
        ({"auths": {"reg.example:5000": {"username": "u"}}}, "entry 'reg.example:5000' has no password"),
        ({"auths": {"reg.example:5000": {"password": SECRET}}}, "has no username"),
        ({"auths": {"reg.example:5000": {}}}, "entry 'reg.example:5000' is empty"),
        ({"auths": {"reg.example:5000": {"email": "a@b"}}}, "is empty"),
        ({"auths": {}}, "it has nothing"),
        ({"credHelpers": "x"}, "credHelpers must be a JSON object"),
        (b" " * (1 << 20) + b"{}", "more than"),
    ],
)
def test_m5_what_is_malformed_is_named(config: Any, named: str) -> None:
    with pytest.raises(BadSettings) as caught:
        find(config)
    assert named in str(caught.value)
    assert SECRET not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)
KEYS = (
    st.sampled_from(["reg.example:5000", "https://reg.example:5000/v1/", "*.example:5000", "///", "a"])
    | st.text()
)
FIELD = st.sampled_from(["auth", "username", "password", "identitytoken", "registrytoken", "email"])
ENTRY = st.dictionaries(FIELD, st.text(max_size=12) | st.just(encoded()) | JSON, max_size=4) | JSON
CONFIG = st.fixed_dictionaries(
    {},
    optional={
        "auths": st.dictionaries(KEYS, ENTRY, max_size=4) | JSON,
        "credHelpers": st.dictionaries(KEYS, JSON, max_size=2) | JSON,
        "credsStore": JSON,
    },
)


@given(CONFIG | JSON)
def test_any_json_gives_a_usable_credential_or_one_named_error(config: Any) -> None:
    try:
        found = find(config)
    except BadSettings as error:
        assert str(error).isprintable()
        assert SECRET not in str(error)
        return
    assert found
    again = find(minimal_config(found, registry="reg.example:5000"))
    assert again == found


@given(st.binary(max_size=60))
def test_any_bytes_are_no_worse(content: bytes) -> None:
    with pytest.raises(BadSettings):
        find(content)


def test_a_credential_shows_nothing_of_itself() -> None:
    assert SECRET not in f"{USER} {USER!r} {[USER]}"
