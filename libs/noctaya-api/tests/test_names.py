from pathlib import Path

from noctaya_api import names


def test_derived_names_and_labels_are_those_of_the_contract() -> None:
    assert names.API_VERSION == "serving.noctaya.io/v1alpha1"
    assert names.LABEL_LLMSERVICE == "serving.noctaya.io/llmservice"
    assert names.ANNOTATION_CREATE_ONCE_HASH == "serving.noctaya.io/create-once-hash"
    assert names.backend_service_name("chat") == "chat-backend"
    assert names.gateway_name("chat") == "chat-gateway"
    assert names.scaler_name("chat") == "chat-scaler"
    assert names.cache_claim_name("chat") == "chat-cache"
    assert names.prewarm_job_name("chat") == "chat-prewarm"
    assert names.demand_auth_secret_name("chat") == "chat-demand-auth"
    assert names.endpoint_url("chat", "team") == "http://chat.team.svc/v1"


def test_o1_the_longest_service_name_leaves_room_for_every_derived_service() -> None:
    longest = "a" * names.MAX_LLMSERVICE_NAME_LENGTH
    derived = [names.backend_service_name(longest), names.gateway_name(longest), names.scaler_name(longest)]
    assert max(len(name) for name in derived) == names.MAX_SERVICE_NAME_LENGTH


def test_every_environment_variable_has_the_prefix_and_its_own_name() -> None:
    variables = [value for name, value in vars(names).items() if name.startswith("ENV_")]
    ours = [value for value in variables if value.startswith("NOCTAYA_")]
    assert len(set(variables)) == len(variables)
    assert set(variables) - set(ours) == {
        "HF_ENDPOINT",
        "HF_HOME",
        "HF_HUB_OFFLINE",
        "HF_MODULES_CACHE",
        "HF_TOKEN_PATH",
        "MODELSCOPE_CACHE",
        "MODELSCOPE_DOMAIN",
        "MODELSCOPE_OFFLINE",
        "TRANSFORMERS_OFFLINE",
        "VLLM_USE_MODELSCOPE",
    }


def test_every_environment_variable_of_ours_is_in_the_contract_for_users() -> None:
    documented = (Path(__file__).parents[3] / "docs/contracts.md").read_text(encoding="utf-8")
    ours = [value for value in vars(names).values() if str(value).startswith("NOCTAYA_")]
    missing = [value for value in ours if f"`{value.removeprefix('NOCTAYA_')}`" not in documented]
    assert missing == []
