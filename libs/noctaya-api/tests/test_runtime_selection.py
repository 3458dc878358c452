from typing import Any

import pytest
from noctaya_api.runtime_selection import RuntimeAmbiguous, RuntimeNotFound, may_select, select_runtime
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService


def runtime(name: str, vendor: str, priority: int = 0) -> InferenceRuntime:
    return InferenceRuntime.model_validate(
        {
            "metadata": {"name": name},
            "spec": {
                "vendor": vendor,
                "priority": priority,
                "container": {"image": "image", "port": {}},
                "accelerator": {"resourceName": "example.com/device"},
            },
        }
    )


def service(**reference: Any) -> LLMService:
    return LLMService.model_validate(
        {"metadata": {"name": "chat"}, "spec": {"model": {"source": {"uri": "hf://a"}}, "runtime": reference}}
    )


def preferring(*vendors: str) -> LLMService:
    return service(selector={"vendor": list(vendors)})


def test_a_pinned_runtime_is_taken_whatever_its_vendor_and_priority() -> None:
    pinned = runtime("pinned", "ascend", priority=-5)
    assert select_runtime(service(name="pinned"), [runtime("other", "nvidia", 100), pinned]) is pinned


def test_s1_vendor_order_beats_priority() -> None:
    first = runtime("first", "nvidia", 1)
    assert select_runtime(preferring("nvidia", "ascend"), [runtime("second", "ascend", 100), first]) is first


def test_s2_priority_decides_within_a_vendor() -> None:
    high = runtime("high", "nvidia", 2)
    runtimes = [runtime("a", "nvidia", 1), high, runtime("z", "nvidia", -3)]
    assert select_runtime(preferring("nvidia"), runtimes) is high


def test_s3_equal_top_priority_is_an_error_that_says_to_pin_the_name() -> None:
    runtimes = [runtime("b", "nvidia", 5), runtime("a", "nvidia", 5), runtime("c", "nvidia", 4)]
    with pytest.raises(RuntimeAmbiguous, match=r"a, b of vendor nvidia.*priority 5.*spec\.runtime\.name"):
        select_runtime(preferring("nvidia"), runtimes)


def test_s3_a_tie_below_the_top_does_not_matter() -> None:
    top = runtime("top", "nvidia", 6)
    runtimes = [runtime("b", "nvidia", 5), runtime("a", "nvidia", 5), top]
    assert select_runtime(preferring("nvidia"), runtimes) is top


def test_s4_the_next_vendor_is_taken_when_the_first_has_no_runtime() -> None:
    only = runtime("only", "ascend")
    assert select_runtime(preferring("nvidia", "ascend"), [only]) is only


def test_s5_no_match_names_the_vendors() -> None:
    with pytest.raises(RuntimeNotFound, match="nvidia or amd"):
        select_runtime(preferring("nvidia", "amd"), [runtime("only", "ascend")])


def test_s6_other_vendors_are_ignored_even_with_a_higher_priority() -> None:
    wanted = runtime("wanted", "nvidia", 1)
    assert select_runtime(preferring("nvidia"), [wanted, runtime("other", "cpu", 1000)]) is wanted


def test_s7_a_missing_runtime_is_named_each_time() -> None:
    for _ in range(2):
        with pytest.raises(RuntimeNotFound, match="'missing'"):
            select_runtime(service(name="missing"), [runtime("other", "nvidia")])


def test_s8_a_runtime_concerns_services_that_pin_it_or_list_its_vendor() -> None:
    changed = runtime("changed", "nvidia")
    assert may_select(service(name="changed"), changed)
    assert may_select(preferring("ascend", "nvidia"), changed)
    assert not may_select(service(name="other"), changed)
    assert not may_select(preferring("ascend"), changed)
