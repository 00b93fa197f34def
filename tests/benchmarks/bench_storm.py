"""How fast the storm is, as ratios measured in the same run, in processor time.

    python tests/benchmarks/bench_storm.py              (about a minute)
    python tests/benchmarks/bench_storm.py --million    (and a million clients)

1. Table A's grid on SimPy beside a plain heap script of the same model, written here.
2. The cost of a call with 100,000 clients beside that with 1,000.
3. A call of the storm beside a call with a timeout on bare SimPy processes.
"""

from __future__ import annotations

import argparse
import heapq
import random
import resource
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import simpy

from simulator.experiments.occ import BASE, CAP, POLICIES, race
from simulator.experiments.storm import Load, Provider, storm
from simulator.service.retry import FullJitter

SIZES = (10, 50, 100, 190)


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """Processor time of the quickest of several runs."""
    best = float("inf")
    for _ in range(times):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best


# 1. Table A


def heap_race(clients: int, policy: str, seed: int) -> int:
    """The model of `occ.race` as one would write it with a heap and nothing else."""
    rng = random.Random(seed)
    order = count()
    heap: list[tuple[float, int, str, int, int]] = []  # time, order, what, client, version
    previous, attempts = [BASE] * clients, [0] * clients
    current = calls = 0

    def send(at: float, what: str, client: int, version: int) -> None:
        leg = abs(rng.normalvariate(0.010, 0.002))
        heapq.heappush(heap, (at + leg, next(order), what, client, version))

    def backoff(client: int) -> float:
        ceiling = min(CAP, BASE * 2.0 ** min(attempts[client], 1_000))
        if policy == "none":
            return 0.0
        if policy == "exponential":
            return ceiling
        if policy == "full":
            return rng.uniform(0.0, ceiling)
        if policy == "equal":
            return ceiling / 2 + rng.uniform(0.0, ceiling / 2)
        previous[client] = min(CAP, rng.uniform(BASE, 3 * previous[client]))
        return previous[client]

    for client in range(clients):
        send(0.0, "read", client, 0)
    while heap:
        now, _, what, client, version = heapq.heappop(heap)
        if what == "read":
            send(now, "write", client, current)
        elif what == "write":
            # the read's answer and the write are two legs; this is the second of them
            send(now, "arrive", client, version)
        elif what == "arrive":
            calls += 1
            if version == current:
                current += 1
                send(now, "done", client, 0)
            else:
                send(now, "lost", client, 0)
        elif what == "lost":
            attempts[client] += 1
            send(now + backoff(client), "read", client, 0)
    return calls


def table_a() -> None:
    """Time of the whole grid, both ways, and that they count the same."""

    def grid(run: Callable[[int, str, int], int]) -> int:
        return sum(
            run(size, policy, seed) for size in SIZES for policy in POLICIES for seed in (1, 2)
        )

    def on_simpy(size: int, policy: str, seed: int) -> int:
        return race(size, POLICIES[policy], seed=seed).calls

    simpy_calls, heap_calls = grid(on_simpy), grid(heap_race)
    ours, plain = seconds(lambda: grid(on_simpy)), seconds(lambda: grid(heap_race))
    print(
        f"table A, 2 repetitions: SimPy {ours:.2f} s ({simpy_calls:,} writes), plain heap "
        f"{plain:.2f} s ({heap_calls:,} writes): {ours / simpy_calls / plain * heap_calls:.2f} "
        f"times as long a write"
    )


# 2. Many clients


def fleet(clients: int, **settings: Any) -> Load:
    """The storm after an outage, with a provider that grows with its clients."""
    provider = Provider(service=8.0 / clients, law=settings.pop("law", "constant"))
    return storm(clients, FullJitter(), provider=provider, **settings)


def timeouts(clients: int) -> None:
    """As many SimPy processes with six timeouts each, and nothing else."""
    env, luck = simpy.Environment(), random.Random(1)

    def client() -> simpy.events.ProcessGenerator:
        for _ in range(6):
            yield env.timeout(30.0 * luck.random())

    for _ in range(clients):
        env.process(client())
    env.run()


def growth() -> None:
    """Cost of a call with 1,000 and with 100,000 clients, beside SimPy's own growth."""
    lossy = {"law": "exponential", "network": 0.02, "lose_request": 0.01, "lose_response": 0.01}
    for name, settings in (("a call", {}), ("a call over a lossy network", lossy)):
        few, many = (fleet(clients, **settings).calls for clients in (1_000, 100_000))
        small = seconds(lambda settings=settings: fleet(1_000, **settings), 20) / few
        large = seconds(lambda settings=settings: fleet(100_000, **settings), 3) / many
        print(
            f"{name}: with 1,000 clients {1e6 * small:.1f} µs, with 100,000 {1e6 * large:.1f} µs: "
            f"{large / small:.2f} times"
        )
    small = seconds(lambda: timeouts(1_000), 9) / 6_000
    large = seconds(lambda: timeouts(100_000), 2) / 600_000
    print(f"(a bare SimPy timeout: {large / small:.2f} times, the queue and the caches)")


def million() -> None:
    """Seconds and memory of a million clients."""
    begin = time.process_time()
    load = fleet(1_000_000)
    spent = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"a million clients, {load.calls:,} calls: {spent:.0f} s, "
        f"{1e6 * spent / load.calls:.1f} µs a call, {peak:.1f} GB"
    )


# 3. Bare SimPy


def bare(calls: int = 20_000) -> None:
    """Calls with a timeout on plain SimPy processes: what one would write first."""
    env = simpy.Environment()

    def serve(reply: simpy.Event) -> simpy.events.ProcessGenerator:
        yield env.timeout(0.05)
        yield env.timeout(0.1)
        yield env.timeout(0.05)
        reply.succeed("paid")

    def client() -> simpy.events.ProcessGenerator:
        for _ in range(calls):
            reply = env.event()
            env.process(serve(reply))
            yield reply | env.timeout(2.0)

    env.process(client())
    env.run()


def beside_bare() -> None:
    """Cost of a call of the storm beside a bare one."""
    load = fleet(5_000)
    ours, plain = seconds(lambda: fleet(5_000)) / load.calls, seconds(bare) / 20_000
    print(
        f"a call of the storm {1e6 * ours:.1f} µs, on bare SimPy {1e6 * plain:.1f} µs: "
        f"{ours / plain:.2f} times"
    )


def main() -> None:
    """All of it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--million", action="store_true", help="a million clients, too")
    arguments = parser.parse_args()
    table_a()
    growth()
    beside_bare()
    if arguments.million:
        million()


if __name__ == "__main__":
    main()
