"""The clients of a storm: they come, send, wait, retry, and learn or give up."""

from __future__ import annotations

import gc
from collections.abc import Generator
from dataclasses import dataclass
from itertools import count
from math import inf
from typing import Any

import simpy

from simulator.experiments.storm.guards import Guard
from simulator.experiments.storm.load import Counts, Load
from simulator.experiments.storm.luck import ARRIVAL, BACKOFF, SEND, THINK, Luck
from simulator.experiments.storm.provider import LIMITED, PAID, SILENCE, Desk, Refund
from simulator.experiments.storm.traffic import Traffic
from simulator.service.retry import Retry, next_delay

__all__ = ["Fleet"]

Step = Generator[simpy.Timeout, Any, None]
Answer = Generator[simpy.Timeout, Any, str]

FORBIDDEN = "forbidden"  # a guard said no: nothing was sent, and nothing will be


@dataclass
class Fleet:
    """One run: the settings of `storm` (explained there), the clock, and the tallies."""

    clients: int
    layers: tuple[Retry, ...]
    desk: Desk
    arrivals: float | Traffic | None
    think: float | None
    timeout: float
    deadline: float
    longest_retry_after: float
    throttles_count: bool
    late_answers: bool
    lose_request: float
    lose_response: float
    network: float
    guards: list[Guard]
    horizon: float
    resolution: float
    seed: int

    def __post_init__(self) -> None:
        self.env = simpy.Environment()
        self.backoffs, self.sends = Luck(self.seed, BACKOFF), Luck(self.seed, SEND)
        self.counts = Counts()
        self.asked = self.answered = self.gave_up = self.calls = 0
        self.latencies: list[float] = []
        self.last = 0.0  # when somebody last stopped waiting

    def go(self) -> None:
        """Run until nobody waits any more, or until the horizon."""
        self.env.process(self.come())
        collects = gc.isenabled()
        gc.disable()  # a million waiting clients are no garbage; looking for some takes a third
        try:
            self.env.run(until=self.horizon)
        finally:
            if collects:
                gc.enable()

    def come(self) -> Step:
        """Clients come: all at once, or one after the other."""
        env, rate = self.env, self.arrivals
        luck = Luck(self.seed, ARRIVAL)
        for number in range(self.clients):
            if rate is not None:
                now = rate(env.now) if callable(rate) else rate
                yield env.timeout(luck.exponential(1.0 / now))
            env.process(self.client(number))

    def client(self, number: int) -> Step:
        """One client: a refund, or one after the other."""
        env = self.env
        yield from self.want(number, number)
        if self.think is None:
            return
        thinking = Luck(self.seed, THINK, number)
        for nth in count(1):
            yield env.timeout(thinking.exponential(self.think))
            yield from self.want(number, number + nth * self.clients)

    def want(self, client: int, number: int) -> Step:
        """Refund `number` is wanted, until it is answered or given up."""
        env = self.env
        guard = self.guards[client % len(self.guards)]
        refund = Refund(number, env.now, self.backoffs.branch(number))
        self.asked += 1
        outcome = FORBIDDEN
        if guard.may_send(env.now):
            outcome = yield from self.attempts(refund, guard, 0)
        self.last = env.now
        if outcome == PAID:
            self.answered += 1
            self.latencies.append(env.now - refund.asked)
            self.counts.goodput[self.row(env.now)] += 1
        else:
            self.gave_up += 1

    def attempts(self, refund: Refund, guard: Guard, layer: int) -> Answer:
        """Layer `layer` of retries: each attempt is all the attempts of the layer below."""
        env, policy = self.env, self.layers[layer]
        inner = layer + 1 < len(self.layers)
        attempt = 0
        delay: float | None = None
        while True:
            if inner:
                outcome = yield from self.attempts(refund, guard, layer + 1)
            else:
                outcome = yield from self.send(refund, guard)
            if outcome in (PAID, FORBIDDEN):
                return outcome
            limited = outcome == LIMITED
            delay = next_delay(
                policy,
                attempt,
                refund.luck,
                previous=delay,
                retry_after=self.desk.provider.retry_after if limited else None,
                longest_retry_after=self.longest_retry_after,
                elapsed=env.now - refund.asked,
                deadline=self.deadline,
            )
            if delay is None:
                return outcome
            if refund.late <= env.now + delay:
                yield env.timeout(refund.late - env.now)
                return PAID
            if delay:
                yield env.timeout(delay)
            if not guard.may_retry(env.now, outcome):
                return FORBIDDEN
            if self.throttles_count or not limited:
                attempt += 1

    def send(self, refund: Refund, guard: Guard) -> Answer:
        """One call. Without a random network it takes a single event."""
        env = self.env
        luck = self.sends.branch(refund.number, refund.sends)
        patience = env.now + self.timeout
        refund.sends += 1
        self.calls += 1
        self.counts.calls[self.row(env.now)] += 1
        outcome, answer = SILENCE, inf
        if not (self.lose_request and luck.random() < self.lose_request):
            leg = luck.exponential(self.network) if self.network else 0.0
            if leg > self.timeout:
                env.process(self.straggle(leg, refund, luck, patience))
            else:
                if leg:
                    yield env.timeout(leg)
                outcome, answer = self.reach(refund, luck, patience)
        if refund.late < answer:  # the answer to an earlier send is sooner
            outcome, answer = PAID, refund.late
        if answer > patience:
            yield env.timeout(patience - env.now)
            if self.late_answers and outcome == PAID:
                refund.late = answer
            outcome = SILENCE
        else:
            yield env.timeout(answer - env.now)
        if outcome == PAID:
            guard.succeeded(env.now, refund.failure)
        else:
            guard.failed(env.now)
            if outcome != SILENCE:
                self.counts.rejected[self.row(env.now)] += 1
        refund.failure = outcome
        return outcome

    def reach(self, refund: Refund, luck: Luck, patience: float) -> tuple[str, float]:
        """The request reaches the provider: how it will end, and when the answer will be here."""
        now, desk = self.env.now, self.desk
        outcome, leaves, turn = desk.receive(now, refund, luck, patience)
        if turn > now:
            self.counts.queue[self.row(now)] += 1
            self.counts.queue[self.row(turn)] -= 1
        answer = leaves + desk.provider.latency
        if self.network:
            answer += luck.exponential(self.network)
        if self.lose_response and luck.random() < self.lose_response:
            answer = inf
        return outcome, answer

    def row(self, time: float) -> int:
        """The row of `Load.series` that `time` belongs to."""
        return int(time / self.resolution)

    def straggle(self, leg: float, refund: Refund, luck: Luck, patience: float) -> Step:
        """A request that reaches the provider after its client has stopped waiting."""
        yield self.env.timeout(leg)
        outcome, answer = self.reach(refund, luck, patience)
        if self.late_answers and outcome == PAID:
            refund.late = min(refund.late, answer)

    def load(self, outage: float, after: float) -> Load:
        """What happened, once it is over."""
        desk = self.desk
        over = self.answered + self.gave_up == self.asked and self.think is None
        return Load(
            asked=self.asked,
            answered=self.answered,
            gave_up=self.gave_up,
            calls=self.calls,
            paid=desk.paid,
            double_refunds=desk.doubles,
            overpaid=desk.overpaid,
            time_to_drain=max(0.0, self.last - after) if over else inf,
            mean_wait=desk.waits / desk.served if desk.served else 0.0,
            abandoned=desk.abandoned,
            horizon=max(self.last, self.resolution) if over else self.horizon,
            outage=outage,
            after=after,
            resolution=self.resolution,
            latencies=self.latencies,
            counts=self.counts,
        )
