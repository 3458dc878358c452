"""C1's own arithmetic and its eyes, without a cluster."""

import asyncio
from dataclasses import replace

import pytest
from noctaya_bench.activation.cycle import AnswerLost, ask
from noctaya_bench.activation.ground import plain_twin
from noctaya_bench.activation.moments import ColdStart, PlainStart, PodStart, phases, row
from noctaya_bench.activation.observer import DEPLOYMENTS, EVENTS, PODS, SLICES, Observer, Sighting

POD = PodStart(written=10.2, scheduled=10.3, started=11.0, ready=12.0)
START = ColdStart(requested=10.0, told=10.05, pod=POD, listed=12.01, first_byte=12.03)
PLAIN = PlainStart(asked=20.0, pod=PodStart(written=20.01, scheduled=20.1, started=20.9, ready=21.8))
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {}\n\ndata: [DONE]\n\n"


def test_what_is_added_is_neither_kedas_nor_kubernetes():
    assert START.added == pytest.approx(0.05 + 0.02)
    assert START.since_ready == pytest.approx(0.03)
    assert START.total == pytest.approx(START.added + START.keda + (START.listed - POD.written))


def test_a_gateway_that_is_quicker_than_the_news_has_added_nothing():
    late = replace(START, listed=12.05)
    assert late.added == pytest.approx(0.05)


def test_every_phase_stands_beside_the_plain_scaling_where_that_has_it():
    rows = {row(phase)[0]: row(phase) for phase in phases([START], [PLAIN])}
    assert rows["request to demand at KEDA"][1:] == ("ours", "50", "50", "50", "-")
    assert rows["demand to replica written"][1:] == ("KEDA", "150", "150", "150", "10")
    assert rows["container started to Ready"][1:] == ("Kubernetes", "1,000", "1,000", "1,000", "900")
    assert rows["Ready to endpoint"][1:3] == ("Kubernetes", "10")
    assert rows["endpoint to first byte"][1:3] == ("ours", "20")
    assert rows["added by Noctaya"][2] == "70"
    assert rows["Ready to first byte"][1:3] == ("both", "30")
    assert rows["replica written to Ready"][2:] == ("1,800", "1,800", "1,800", "1,790")


def sighting(at, kind, name, *, gone=False, **rest):
    metadata = {"name": name, "labels": {"app.kubernetes.io/name": "chat"}}
    return Sighting(at, kind, gone, {"metadata": metadata, "spec": {}, **rest})


READY = {"conditions": [{"type": "Ready", "status": "True"}]}


async def test_the_start_of_a_pod_is_put_together_from_what_was_seen_in_any_order():
    observer = Observer()
    looking = asyncio.create_task(observer.pod_start("chat", after=1.0))
    for each in (
        sighting(0.5, DEPLOYMENTS, "chat", spec={"replicas": 1}),
        sighting(1.4, EVENTS, "e", reason="Started", involvedObject={"name": "chat-1"}),
        sighting(1.1, DEPLOYMENTS, "chat", spec={"replicas": 1}),
        sighting(1.2, PODS, "chat-1"),
        sighting(1.3, PODS, "chat-1", spec={"nodeName": "node-1"}),
        sighting(1.35, EVENTS, "e", reason="Pulled", involvedObject={"name": "chat-1"}),
        sighting(1.5, PODS, "chat-0", spec={"nodeName": "node-1"}, status=READY),
        sighting(1.6, PODS, "chat-1", spec={"nodeName": "node-1"}, status=READY),
    ):
        await observer.saw(each)
        await asyncio.sleep(0)
    assert await looking == PodStart(written=1.1, scheduled=1.3, started=1.4, ready=1.6)


async def test_a_service_is_listed_with_its_first_ready_endpoint():
    observer = Observer()
    labels = {"kubernetes.io/service-name": "chat-backend"}
    for at, service, ready in (
        (1.1, "chat", True),
        (1.2, "chat-backend", False),
        (1.3, "chat-backend", True),
    ):
        metadata = {"name": "slice", "labels": {**labels, "kubernetes.io/service-name": service}}
        slice_ = {"metadata": metadata, "endpoints": [{"conditions": {"ready": ready}}]}
        await observer.saw(Sighting(at, SLICES, gone=False, object=slice_))
    assert await observer.listed("chat-backend", after=1.0) == 1.3


async def test_the_scalers_word_counts_from_the_request_on():
    observer = Observer()
    await observer.heard(active=True)
    after = asyncio.get_running_loop().time()
    await observer.heard(active=False)
    told = asyncio.create_task(observer.told(after=after))
    await asyncio.sleep(0)
    assert not told.done()
    await observer.heard(active=True)
    assert await told > after


async def test_a_pod_has_gone_when_its_deletion_is_seen():
    observer = Observer()
    await observer.saw(sighting(2.0, PODS, "chat-1"))
    going = asyncio.create_task(observer.gone("chat", after=1.0))
    await asyncio.sleep(0)
    assert not going.done()
    await observer.saw(sighting(2.1, PODS, "chat-1", gone=True))
    await going


@pytest.mark.parametrize("answer", [WHOLE.replace(b"[DONE]", b"{}"), b"HTTP/1.1 503 no\r\n\r\n[DONE]", b""])
async def test_an_answer_that_is_cut_or_an_error_ends_the_measure(answer):
    async with await serving(answer) as server:
        with pytest.raises(AnswerLost):
            await ask(*server.sockets[0].getsockname())


async def test_a_whole_answer_is_timed_from_its_request_to_its_first_byte():
    async with await serving(WHOLE) as server:
        begun = asyncio.get_running_loop().time()
        requested, first_byte = await ask(*server.sockets[0].getsockname())
    assert begun <= requested < first_byte


async def serving(answer):
    async def answers(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
        writer.write(answer)
        await writer.drain()
        writer.close()

    return await asyncio.start_server(answers, "127.0.0.1", 0)


def test_the_twin_has_the_same_pod_and_none_of_the_labels():
    template = {"metadata": {"labels": {"serving.noctaya.io/llmservice": "chat"}}, "spec": {"containers": []}}
    twin = plain_twin({"metadata": {"namespace": "n"}, "spec": {"template": template}})
    assert twin["spec"]["template"]["spec"] == template["spec"]
    assert twin["spec"]["replicas"] == 0
    assert twin["metadata"]["namespace"] == "n"
    labels = twin["spec"]["template"]["metadata"]["labels"]
    assert labels == twin["spec"]["selector"]["matchLabels"] == {"app.kubernetes.io/name": "plain"}
