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

AGAIN = "again"  # it failed, and will be sent again
FORBIDDEN = "forbidden"  # a guard said no before the first send


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
        provider = self.desk.provider
        self.chancy = provider.law == "exponential" or any(
            (provider.failure_rate, self.lose_request, self.lose_response, self.network)
        )  # whether a send needs luck at all: a stream for each costs a tenth of the time
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
        """One client wants a refund until it is answered or given up; with `think`, then another.

        How a send ends is known when it reaches the provider, so the wait for the answer and the
        wait before the next send are one event. With a guard they are two: it must hear of the
        failure when it happens.
        """
        env = self.env
        guard = self.guards[number % len(self.guards)] if self.guards else None
        for nth in count():
            refund = self.wish(number + nth * self.clients)
            outcome = failure = FORBIDDEN
            allowed = guard is None or guard.may_send(env.now)
            while allowed:
                patience = env.now + self.timeout
                luck, leg = self.send(refund)
                if 0.0 < leg <= self.timeout:
                    yield env.timeout(leg)
                outcome, ends = self.outcome(refund, luck, leg, patience)
                if guard is not None:
                    yield env.timeout(ends - env.now)
                    self.tell(guard, refund, outcome)
                if outcome != PAID:
                    failure = outcome
                    outcome, ends = self.go_on(refund, failure, ends)
                if ends > env.now:
                    yield env.timeout(ends - env.now)
                if outcome != AGAIN:
                    break
                allowed = guard is None or guard.may_retry(env.now, failure)
            self.learn(refund, paid=outcome == PAID)
            if self.think is None:
                return
            thinking = Luck(self.seed, THINK, number, nth)
            yield env.timeout(thinking.exponential(self.think))

    def wish(self, number: int) -> Refund:
        """A refund is wanted."""
        self.asked += 1
        return Refund(number, self.env.now, self.backoffs.branch(number), len(self.layers))

    def learn(self, refund: Refund, paid: bool) -> None:
        """Its client has the answer, or gave up."""
        self.last = now = self.env.now
        if paid:
            self.answered += 1
            self.latencies.append(now - refund.asked)
            self.counts.goodput[self.row(now)] += 1
        else:
            self.gave_up += 1

    def go_on(self, refund: Refund, failure: str, ends: float) -> tuple[str, float]:
        """After a failure at `ends`: AGAIN and when, or what it was, if nobody sends again.

        The innermost layer that still wants to sends again; the layers within it begin anew.
        """
        if failure != SILENCE:
            self.counts.rejected[self.row(ends)] += 1
        limited = failure == LIMITED
        for layer in range(len(self.layers) - 1, -1, -1):
            delay = next_delay(
                self.layers[layer],
                refund.attempts[layer],
                refund.luck,
                previous=refund.delays[layer],
                retry_after=self.desk.provider.retry_after if limited else None,
                longest_retry_after=self.longest_retry_after,
                elapsed=ends - refund.asked,
                deadline=self.deadline,
            )
            refund.delays[layer] = delay
            if delay is None:
                refund.attempts[layer] = 0
                continue
            if self.throttles_count or not limited:
                refund.attempts[layer] += 1
            if refund.late <= ends + delay:
                return PAID, refund.late
            return AGAIN, ends + delay
        return failure, ends

    def send(self, refund: Refund) -> tuple[Luck, float]:
        """One call leaves: its luck, and the seconds until it reaches the provider (inf: lost)."""
        luck = self.sends.branch(refund.number, refund.sends) if self.chancy else self.sends
        refund.sends += 1
        self.calls += 1
        self.counts.calls[self.row(self.env.now)] += 1
        if self.lose_request and luck.random() < self.lose_request:
            return luck, inf
        return luck, luck.exponential(self.network) if self.network else 0.0

    def outcome(self, refund: Refund, luck: Luck, leg: float, patience: float) -> tuple[str, float]:
        """How a call ends for its client, and when: at the latest when its patience does."""
        outcome, answer = SILENCE, inf
        if leg <= self.timeout:
            outcome, answer = self.reach(refund, luck, patience)
        elif leg < inf:
            self.env.process(self.straggle(leg, refund, luck, patience))
        if refund.late < answer:  # the answer to an earlier send is sooner
            outcome, answer = PAID, refund.late
        if answer <= patience:
            return outcome, answer
        if self.late_answers and outcome == PAID:
            refund.late = answer
        return SILENCE, patience

    def tell(self, guard: Guard, refund: Refund, outcome: str) -> None:
        """The guard hears how a send ended."""
        if outcome == PAID:
            guard.succeeded(self.env.now, refund.failure)
        else:
            guard.failed(self.env.now)
        refund.failure = outcome

    def reach(self, refund: Refund, luck: Luck, patience: float) -> tuple[str, float]:
        """The request reaches the provider: what it decides, and when the answer will be here."""
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
        over = self.answered + self.gave_up == self.clients and self.think is None
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
