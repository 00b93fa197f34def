"""A storm: many clients, one provider, and what their retries do to it."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from simulator.experiments.storm.fleet import Fleet
from simulator.experiments.storm.guards import Guard, GuardFactory
from simulator.experiments.storm.load import Load
from simulator.experiments.storm.provider import Desk, Provider
from simulator.experiments.storm.traffic import Traffic
from simulator.service.retry import Retry
from simulator.service.retry_limits import Limit

__all__ = ["storm"]

ORDINARY = Provider()


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
    _check(clients, layers, guards, outages, arrivals, think)
    for name, value in (("timeout", timeout), ("horizon", horizon), ("resolution", resolution)):
        if not value > 0:
            raise ValueError(f"{name} is {value}; it must be more than 0 seconds.")
    for name, value in (("lose_request", lose_request), ("lose_response", lose_response)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} is {value}; it is a probability, between 0 and 1.")
    fleet = Fleet(
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
        guards=[] if guard is Guard else [guard() for _ in range(guards)],
        horizon=horizon,
        resolution=resolution,
        seed=seed,
    )
    fleet.go()
    return fleet.load(
        outage=min((begin for begin, _ in outages), default=0.0),
        after=max((over for _, over in outages), default=0.0),
    )


def _check(
    clients: int,
    layers: Sequence[Retry],
    guards: int,
    outages: Sequence[tuple[float, float]],
    arrivals: float | Traffic | None,
    think: float | None,
) -> None:
    if clients < 0 or guards < 1 or not layers:
        raise ValueError(
            f"clients={clients}, guards={guards}, {len(layers)} layers: a storm needs 0 or more "
            "clients, and at least one guard and one layer of retries."
        )
    for layer in layers:
        if isinstance(layer, Limit):
            raise ValueError(
                f"retry={layer!r}: a storm has its limits beside the policy. Give the policy "
                "inside, and deadline=, guard= or longest_retry_after=."
            )
    last = 0.0
    for begin, over in sorted(outages):
        if not last <= begin < over:
            raise ValueError(
                f"outage from {begin} to {over}: each begins at 0 s or later, after the one "
                "before it, and before it ends."
            )
        last = over
    if isinstance(arrivals, int | float) and not arrivals > 0:
        raise ValueError(f"arrivals is {arrivals}; it must be more than 0 a second, or None.")
    if think is not None and not think > 0:
        raise ValueError(f"think is {think}; it must be more than 0 seconds, or None.")
