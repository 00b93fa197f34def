"""A storm: many clients, one provider, and what their retries do to it."""

from __future__ import annotations

import gc
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import count
from math import inf
from typing import Any

import simpy

from simulator.experiments.storm.guards import Guard, GuardFactory
from simulator.experiments.storm.load import Counts, Load
from simulator.experiments.storm.luck import ARRIVAL, BACKOFF, SEND, THINK, Luck
from simulator.experiments.storm.provider import (
    LIMITED,
    PAID,
    SILENCE,
    Desk,
    Provider,
    Refund,
)
from simulator.experiments.storm.traffic import Traffic
from simulator.service.retry import Retry, next_delay

__all__ = ["storm"]

Step = Generator[simpy.Timeout, Any, None]
Answer = Generator[simpy.Timeout, Any, str]

ORDINARY = Provider()
FORBIDDEN = "forbidden"  # a guard said no: nothing was sent, and nothing will be


def storm(
    clients: int,
    retry: Retry | Sequence[Retry],
    *,
    provider: Provider = ORDINARY,
    outages: Sequence[tuple[float, float]] = ((0.0, 10.0),),
    arrivals: float | Traffic | None = None,
    think: float | None = None,
    timeout: float = 1.0,
    deadline: float = inf,
    longest_retry_after: float = inf,
    throttles_count: bool = True,
    late_answers: bool = False,
    lose_request: float = 0.0,
    lose_response: float = 0.0,
    network: float = 0.0,
    guard: GuardFactory = Guard,
    guards: int = 1,
    key: bool = False,
    horizon: float = 3600.0,
    resolution: float = 1.0,
    seed: int = 1,
) -> Load:
    """Let `clients` ask a provider for refunds, and retry.

    Args:
        clients: how many want a refund. Open loop: each wants one. Closed loop (`think`): each
            wants one after the other.
        retry: the policy of every client; a sequence of policies is as many layers, the outermost
            first, each of which retries what the next one gave up (their attempts multiply).
        provider: its capacity, queue, limits.
        outages: (from, until) in seconds; what is in the house when one begins is lost.
        arrivals: refunds a second, as a Poisson process (a number, or a rate that changes with
            time); None = all clients come at time 0.
        think: mean seconds between an answer and the next wish of a closed-loop client; None =
            open loop.
        timeout: seconds a client waits for the answer to one send; an answer in that very moment
            still counts.
        deadline: seconds after the wish when a client stops sending.
        longest_retry_after: how long a wait the clients let the provider ask for, seconds; 0 =
            they ignore it, inf = they obey literally (case B77).
        throttles_count: whether an attempt that hit the rate limit counts as one.
        late_answers: whether the answer to an earlier send is still understood when it comes.
        lose_request: probability that a request is lost on its way.
        lose_response: probability that an answer is lost, given that there is one.
        network: mean seconds of each leg, exponential, on top of the provider's latency.
        guard: makes a token bucket or a breaker; `guards` of them are shared by the clients in
            turn, as `guards` processes would share them.
        guards: how many there are.
        key: whether clients send an idempotency key, the same on every attempt.
        horizon: seconds after which the run ends, whoever still waits.
        resolution: seconds of one row of `Load.series`.
        seed: of all luck. Clients have streams of their own, and the n-th send of a client has
            the same luck under every policy.

    Returns:
        What happened; what is still in the provider's queue when the run ends is counted as paid.

    Raises:
        ValueError: a number makes no sense; the sentence says which.
    """
    layers = tuple(retry) if isinstance(retry, Sequence) else (retry,)
    if clients < 0 or guards < 1 or not layers:
        raise ValueError(
            f"clients={clients}, guards={guards}, {len(layers)} layers: a storm needs 0 or more "
            "clients, and at least one guard and one layer of retries."
        )
    for name, value in (("timeout", timeout), ("horizon", horizon), ("resolution", resolution)):
        if not value > 0:
            raise ValueError(f"{name} is {value}; it must be more than 0 seconds.")
    for name, value in (("lose_request", lose_request), ("lose_response", lose_response)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} is {value}; it is a probability, between 0 and 1.")
    if think is not None and not think > 0:
        raise ValueError(f"think is {think}; it must be more than 0 seconds, or None.")
    run = _Run(
        clients=clients,
        layers=layers,
        desk=Desk(provider, outages, key),
        arrivals=arrivals,
        think=think,
        timeout=timeout,
        deadline=deadline,
        longest_retry_after=longest_retry_after,
        throttles_count=throttles_count,
        late_answers=late_answers,
        lose_request=lose_request,
        lose_response=lose_response,
        network=network,
        guards=[guard() for _ in range(guards)],
        horizon=horizon,
        resolution=resolution,
        seed=seed,
    )
    run.go()
    return run.load(
        outage=min((begin for begin, _ in outages), default=0.0),
        after=max((over for _, over in outages), default=0.0),
    )


@dataclass
class _Run:
    """One run: the settings of `storm`, the clock, and the tallies."""

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
