"""What each process of a run does, from its start until it is killed."""

from __future__ import annotations

import json
import shutil
import signal
import threading
import time
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from simulator.live.client import HttpClient
from simulator.live.people import BrokerClient, notify, session_from
from simulator.live.problems import Problem
from simulator.live.provider import start_provider
from simulator.live.proxy import start_proxy
from simulator.live.runtime import LiveRuntime, Service, drive
from simulator.live.stops import Stops
from simulator.live.urls import open_database
from simulator.live.web import Handler, serve
from simulator.service import tools
from simulator.service import worker as workers
from simulator.service.errors import (
    CommitUnknown,
    DatabaseUnavailable,
    Declined,
    RateLimited,
    Silence,
)
from simulator.service.outbox import Outbox
from simulator.service.schemas import ToolCall

if TYPE_CHECKING:
    from simulator.live.processes import Setting
    from simulator.live.stripe_client import StripeClient

__all__ = ["backend", "provider", "proxy", "runtime_of", "worker"]

SERVICE_ERRORS = (Silence, Declined, RateLimited, DatabaseUnavailable, CommitUnknown)


def runtime_of(setting: Setting, provider_url: str, owner: str, stops: Stops) -> LiveRuntime:
    """The runtime of one life of a backend or a worker."""
    client: HttpClient | StripeClient
    if setting.client == "stripe":
        from simulator.live.stripe_client import StripeClient

        client = StripeClient(provider_url)
    else:
        client = HttpClient(provider_url)
    broker = BrokerClient(setting.people)
    services: dict[str, Service] = {
        "provider.refund": client.refund,
        "provider.find": client.find,
        "customer.notify": notify(setting.people),
        "broker.publish": broker.publish,
        "broker.take": broker.take,
    }
    database = open_database(setting.database, setting.clock)
    takes_over = setting.design.takes_over
    return LiveRuntime(owner, setting.clock, database, services, takes_over, stops, setting.seed)


def provider(line: Connection, setting: Setting) -> None:
    """The payment provider."""
    stops = Stops(line)
    with said_by(stops):
        server = start_provider(setting.ledger, setting.clock, setting.trouble, setting.port, stops)
        stops.report("ready", server.url)
        stay()


def proxy(line: Connection, setting: Setting, provider_url: str) -> None:
    """The network before it. Nobody kills it: if the parent is gone, it tidies up."""
    stops = Stops(line, orphaned=lambda: tidy_up(setting.folders))
    with said_by(stops):
        server = start_proxy(provider_url, setting.clock, setting.trouble, stops)
        stops.report("ready", server.url)
        stay()


def tidy_up(folders: tuple[Path, ...]) -> None:
    """Removes folders in which others, who end about now, may still be writing."""
    for _ in range(100):
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        if not any(folder.exists() for folder in folders):
            return
        time.sleep(0.05)


def backend(line: Connection, setting: Setting, provider_url: str, owner: str) -> None:
    """A backend: takes tool calls over HTTP, each in a thread of its own."""
    stops = Stops(line)
    with said_by(stops):
        runtime = runtime_of(setting, provider_url, owner, stops)
        handle = setting.design.handle or tools.handle

        class BackendHandler(Handler):
            def do_POST(self) -> None:  # noqa: N802 - the base's name
                value = json.loads(self.body())
                call = ToolCall(**value["call"])
                session = session_from(value["session"])
                try:
                    answer = drive(handle(runtime, setting.design, call, session))
                except SERVICE_ERRORS as error:
                    self.reply_json(500, f"{type(error).__name__}: {error}")
                else:
                    self.reply_json(200, asdict(answer))

        server = serve(BackendHandler)
        stops.report("ready", server.url)
        stay()


def worker(line: Connection, setting: Setting, provider_url: str, owner: str) -> None:
    """A worker: carries out what was promised, for ever."""
    stops = Stops(line)
    with said_by(stops):
        runtime = runtime_of(setting, provider_url, owner, stops)
        design = setting.design
        work = workers.work if isinstance(design.dispatch, Outbox) else workers.consume
        stops.report("ready", None)
        while True:
            try:
                drive(work(runtime, design))
            except SERVICE_ERRORS:
                # As on the virtual ground: it dies of it, and starts anew.
                runtime.memory.clear()


def stay() -> NoReturn:
    """Leaves the work to the threads of the server."""
    while True:
        threading.Event().wait()


class said_by:  # noqa: N801 - reads like a word
    """Tells the parent, in a sentence, why this process cannot go on."""

    def __init__(self, stops: Stops) -> None:
        self.stops = stops

    def __enter__(self) -> None:
        # Ctrl-C is for the parent, who then ends us all.
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Problem):
            self.stops.report("problem", str(error))
            stay()
        elif isinstance(error, Exception):
            text = f"{type(error).__name__}: {error}"
            self.stops.report("problem", f"A process of the service failed. {text}")
