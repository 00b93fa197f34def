"""The processes of a run: provider, proxy, backends, workers. Each can be killed, and restarted.

New processes are forked from a clean one that has everything imported already (forkserver),
so that a restart takes hundredths of a second. Where there is no fork they are started anew.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.util import get_temp_dir
from pathlib import Path
from typing import Any

from simulator.live.clock import Clock
from simulator.live.problems import Problem
from simulator.live.trouble import Trouble
from simulator.service.design import Design

__all__ = ["Crew", "Death", "Setting"]

STARTING = 30.0
"""Seconds of the wall's clock for a process to come up."""

PRELOADED = ["simulator.live.roles", "psycopg", "psycopg.types.string", "urllib3.connection"]
"""What every new process has imported already; what is not installed is left out."""


@dataclass(frozen=True)
class Setting:
    """What every process of a run has to know.

    Attributes:
        design: the service under trial.
        database: its URL.
        ledger: the provider's file.
        folders: temporary ones; whoever is left alone removes them.
        clock: everybody's.
        trouble: what goes wrong on the way to the provider, and in it.
        people: URL of the customers and of the broker.
        client: "http", or "stripe" for Stripe's own client.
        port: the provider's; 0 takes a free one.
        seed: of all luck.
    """

    design: Design
    database: str
    ledger: Path
    folders: tuple[Path, ...]
    clock: Clock
    trouble: Trouble = field(default_factory=Trouble)
    people: str = ""
    client: str = "http"
    port: int = 0
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Death:
    """A process that was killed: which, and where it was ("" at random)."""

    process: str
    what: str = ""
    place: str = ""


class Crew:
    """Starts the processes, restarts them when they die, and ends them all.

    Attributes:
        deaths: who was killed, in order.
        faults: how often each kind of trouble struck.
        silences: calls of the provider that ended without an answer, as their callers saw it.
        problem: a sentence, if the run cannot go on.
    """

    def __init__(self, setting: Setting, backends: int = 2, workers: int = 2) -> None:
        methods = multiprocessing.get_all_start_methods()
        self._context: Any = multiprocessing.get_context(
            "forkserver" if "forkserver" in methods else "spawn"
        )
        if "forkserver" in methods:
            self._context.set_forkserver_preload(PRELOADED)
        # multiprocessing keeps a socket there.
        folders = (*setting.folders, Path(get_temp_dir()))
        self.setting = replace(setting, folders=folders)
        self.deaths: list[Death] = []
        self.faults: Counter[str] = Counter()
        self.silences = 0
        self.problem: str | None = None
        self.changed = threading.Condition()
        self._members: dict[str, Member] = {}
        self._closing = False
        self._provider_url = ""
        self._proxy_url = ""
        self.backends = [f"backend-{number + 1}" for number in range(backends)]
        needed = 0 if setting.design.dispatch.inline else workers
        self.workers = [f"worker-{number + 1}" for number in range(needed)]
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    # Life.

    def __enter__(self) -> Crew:
        try:
            self._watcher.start()
            self._provider_url = self._start("provider")
            # After a crash it comes up where the proxy looks for it.
            port = int(self._provider_url.rsplit(":", 1)[1])
            self.setting = replace(self.setting, port=port)
            self._proxy_url = self._start("proxy")
            for name in self.backends + self.workers:
                self._begin(name, 1)
            for name in self.backends + self.workers:
                self._await(name)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kills everybody, and waits until they are gone."""
        self._closing = True
        if self._watcher.is_alive():
            self._watcher.join(STARTING)  # first, so that it restarts nobody
        for member in self._members.values():
            member.process.kill()
        for member in self._members.values():
            member.process.join(STARTING)
            member.line.close()

    @property
    def proxy_url(self) -> str:
        """Where the service finds the provider."""
        return self._proxy_url

    def addresses(self) -> list[str | None]:
        """The backends' URLs; None for one that is not up."""
        return [self._members[name].url for name in self.backends]

    def check(self) -> None:
        """Raises a Problem if the run cannot go on."""
        if self.problem is not None:
            raise Problem(self.problem)

    # Death.

    def stop_at(self, names: list[str], what: str, place: str) -> None:
        """Whoever of these gets there next stops there, and is killed."""
        for name in names:
            self._members[name].say((what, place))

    def stop_nowhere(self, names: list[str]) -> None:
        """Takes `stop_at` back."""
        for name in names:
            self._members[name].say(None)

    def kill(self, name: str) -> None:
        """SIGKILL, wherever it is."""
        member = self._members[name]
        if member.process.is_alive():
            member.process.kill()
            self._died(Death(name))

    def _died(self, death: Death) -> None:
        with self.changed:
            self.deaths.append(death)
            self.changed.notify_all()

    # The watcher's thread.

    def _watch(self) -> None:
        try:
            while not self._closing:
                self._look()
        except Exception as error:
            # Without a watcher nobody would be restarted: the run is over.
            self._stop(f"The processes cannot be watched any more: {error!r}.")

    def _look(self) -> None:
        with self.changed:
            members = list(self._members.values())
        lines = {member.line: member for member in members if not member.deaf}
        ends = {member.process.sentinel: member for member in members if not member.over}
        for ready in wait([*lines, *ends], timeout=0.05):
            if ready in lines:
                self._hear(lines[ready])
            elif not self._closing:
                self._restart(ends[ready])

    def _stop(self, sentence: str) -> None:
        with self.changed:
            self.problem = self.problem or sentence
            self.changed.notify_all()

    def _hear(self, member: Member) -> None:
        try:
            kind, *rest = member.line.recv()
        except (EOFError, OSError):
            member.deaf = True
            return
        if kind == "ready":
            with self.changed:
                member.url = rest[0]
                member.ready = True
                self.changed.notify_all()
        elif kind == "stopped":
            member.process.kill()
            self._died(Death(member.name, *rest))
        elif kind == "fault":
            self.faults[rest[0]] += 1
        elif kind == "silence":
            self.silences += rest[0] == "provider.refund"
        elif kind in ("full", "problem"):
            self._stop(why(kind, rest[0]))

    def _restart(self, member: Member) -> None:
        member.over = True
        member.url = None
        member.process.join()
        if self.problem is None:
            self._begin(member.name, member.number + 1)

    def _start(self, name: str) -> str:
        self._begin(name, 1)
        return self._await(name)

    def _await(self, name: str) -> str:
        member = self._members[name]
        with self.changed:
            self.changed.wait_for(
                lambda: self._members[name].ready or self.problem is not None, STARTING
            )
        self.check()
        if not self._members[name].ready:
            raise Problem(f"{name} did not come up within {STARTING:g} s. Is this machine busy?")
        return self._members[name].url or member.name

    def _begin(self, name: str, number: int) -> None:
        from simulator.live import roles

        ours, theirs = self._context.Pipe()
        role: Callable[..., None]
        given: tuple[Any, ...]
        if name == "provider":
            role, given = roles.provider, ()
        elif name == "proxy":
            role, given = roles.proxy, (self._provider_url,)
        else:
            role = roles.backend if name in self.backends else roles.worker
            given = (self._proxy_url, f"{name}#{number}")
        process = self._context.Process(
            target=role, args=(theirs, self.setting, *given), name=name, daemon=True
        )
        process.start()
        theirs.close()
        with self.changed:
            old = self._members.get(name)
            self._members[name] = Member(name, number, process, ours)
        if old is not None:
            old.line.close()


@dataclass(eq=False)
class Member:
    """One life of one process, as its parent sees it."""

    name: str
    number: int
    process: Any
    line: Connection
    url: str | None = None
    ready: bool = False
    deaf: bool = False
    over: bool = False

    def say(self, place: tuple[str, str] | None) -> None:
        """Arms a place to stop at, or none; in vain if the process is gone."""
        with suppress(OSError):
            self.line.send(place)


def why(kind: str, text: str) -> str:
    """The sentence for a process that cannot go on."""
    if kind == "full":
        return (
            f"There is {text}. What was committed is kept, and what was not is not lost: "
            "it was never promised. Make room, and start again."
        )
    return text
