"""From options to a run: everything that can be wrong is found before anything is started."""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from noctaya_api.manifests import ManifestError, load_manifests
from rich.console import Console

from noctaya_cli.child import base_environment, spawn_guarded
from noctaya_cli.embedded import Embedded
from noctaya_cli.events import EventFile, EventLog
from noctaya_cli.gateway_plan import GatewayMissing, find_gateway
from noctaya_cli.log_tail import LogFollower
from noctaya_cli.machine import Machine, make_run_directory, state_directory
from noctaya_cli.options import OptionError, RunOptions
from noctaya_cli.plan import ServicePlan
from noctaya_cli.planning import Surroundings, plan_services
from noctaya_cli.ports import PortPool, PortUnavailable, service_ports
from noctaya_cli.probe_attempt import ProbeClient
from noctaya_cli.rendering import PlanError
from noctaya_cli.service import GatewayFailed, LocalService
from noctaya_cli.timeline import TimelineRecorder
from noctaya_cli.view import LiveView, PlainLines

NEW_LOGS = 1.0
"""Seconds between looks for processes whose output isn't shown yet."""


def run_session(options: RunOptions) -> None:
    """Run until a signal; raises OptionError for everything the user can put right."""
    try:
        environment = base_environment(Path(sys.executable).parent)
        plans = make_plans(options, path=environment["PATH"])
        program = find_gateway()
        asyncio.run(run_plans(plans, options, environment=environment, program=program))
    except (ManifestError, PortUnavailable, GatewayMissing, GatewayFailed) as error:
        raise OptionError(str(error)) from error
    except OSError as error:
        raise OptionError(f"{error.filename or 'noctaya run'}: {error.strerror or error}") from error


def make_plans(options: RunOptions, *, path: str) -> list[ServicePlan]:
    """Plans of all services in the files; raises ManifestError or OptionError."""
    manifests = load_manifests(options.files)
    if not manifests.services:
        raise OptionError("no LLMService in " + ", ".join(map(str, options.files)))
    names = [service.metadata.name for service in manifests.services]
    for name in names:
        if names.count(name) > 1:
            raise OptionError(f"LLMService {name} exists in two namespaces; run one of them at a time")
    surroundings = Surroundings(volumes=options.volumes, secrets=options.secrets, path=path)
    try:
        return plan_services(list(manifests.services), list(manifests.runtimes), surroundings)
    except PlanError as error:
        raise OptionError(error.located(manifests.places)) from error


async def run_plans(
    plans: list[ServicePlan], options: RunOptions, *, environment: dict[str, str], program: Path
) -> None:
    """Run the plans and show them until a signal."""
    pool = PortPool()
    ports = service_ports(options.host, first=options.port, count=len(plans), pool=pool)
    stamp = time.strftime("%Y%m%d-%H%M%S") + f"-{os.getpid()}"
    directory = make_run_directory(state_directory(), stamp=stamp)
    async with contextlib.AsyncExitStack() as stack:
        attempt = ProbeClient()
        stack.push_async_callback(attempt.close)
        events = EventLog()
        if options.events is not None:
            stack.callback((sink := EventFile(options.events)).close)
            events.subscribe(sink)
        timelines = TimelineRecorder()
        events.subscribe(timelines)
        machine = Machine(
            spawn=spawn_guarded,
            attempt=attempt,
            environment=environment,
            ports=pool,
            directory=directory,
            gateway_program=program,
            gateway_overrides=options.gateway_settings,
        )
        services = [
            LocalService(
                plan, host=options.host, port=port, machine=machine, events=events, timelines=timelines
            )
            for plan, port in zip(plans, ports, strict=True)
        ]
        await show_and_run(services, events, timelines, directory=directory, logs=options.logs)


async def show_and_run(
    services: list[LocalService],
    events: EventLog,
    timelines: TimelineRecorder,
    *,
    directory: Path,
    logs: bool,
) -> None:
    """Run the services with a live view on a terminal, plain lines otherwise."""
    console = Console()
    view: LiveView | PlainLines
    if console.is_terminal and not console.is_dumb_terminal:
        view = LiveView(
            console, statuses=lambda: [service.status() for service in services], directory=directory
        )
    else:
        view = PlainLines(sys.stdout, timelines=timelines)
        view.line("noctaya", f"logs in {directory}")
    events.subscribe(view)
    background: list[asyncio.Task[None]] = []
    if isinstance(view, LiveView):
        background.append(asyncio.create_task(view.run(), name="view"))
    if logs:
        background.append(asyncio.create_task(follow_logs(services, view), name="logs"))

    def stopping() -> None:
        if isinstance(view, LiveView):
            view.closing = "stopping: requests in flight may finish · Ctrl-C again ends them at once"
        else:
            view.line("noctaya", "stopping")

    try:
        await Embedded(services, stopping=stopping).run()
    finally:
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)


async def follow_logs(services: list[LocalService], view: LiveView | PlainLines) -> None:
    """Show the output of every process, also of those started later, until cancelled."""
    followed: set[Path] = set()
    async with asyncio.TaskGroup() as group:
        while True:
            for service in services:
                for name, path in service.logs.items():
                    if path not in followed:
                        followed.add(path)
                        group.create_task(LogFollower(path, show=show_as(view, name)).run())
            await asyncio.sleep(NEW_LOGS)


def show_as(view: LiveView | PlainLines, name: str) -> Callable[[str], None]:
    """A function that shows one line of the process `name`."""
    return lambda line: view.line(name, line)
