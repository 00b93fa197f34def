"""How fast the simulator is, as ratios to a bare SimPy loop measured in the same run.

    python tests/benchmarks/bench_simulator.py

The bare loop is what one would write in SimPy for a call with a timeout. Beside it stands the
leanest that such a call can be. Refunds are complete histories on a real database, judged.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Callable

import simpy

from simulator import Scenario, designs, explore, faults, simulate

CALLS = 20_000
REFUNDS = 2_000


def bare_calls() -> int:
    """Calls with a timeout as SimPy's documentation would write them: a provider that takes
    requests from a `Store`, messages under way as processes, a client at `reply | timeout`."""
    env = simpy.Environment()
    inbox = simpy.Store(env)

    def request(reply: simpy.Event) -> simpy.events.ProcessGenerator:
        yield env.timeout(0.05)
        yield inbox.put(reply)

    def answer(reply: simpy.Event) -> simpy.events.ProcessGenerator:
        yield env.timeout(0.05)
        reply.succeed("paid")

    def provider() -> simpy.events.ProcessGenerator:
        while True:
            reply = yield inbox.get()
            yield env.timeout(0.1)
            env.process(answer(reply))

    def client() -> simpy.events.ProcessGenerator:
        for _ in range(CALLS):
            reply = env.event()
            env.process(request(reply))
            got = yield reply | env.timeout(2.0)
            assert reply in got

    env.process(provider())
    env.run(env.process(client()))
    return CALLS


def lean_calls() -> int:
    """The least that a call with a timeout can be: one process for its way, its work, its way
    back, and nobody who takes it."""
    env = simpy.Environment()

    def serve(reply: simpy.Event) -> simpy.events.ProcessGenerator:
        yield env.timeout(0.05)
        yield env.timeout(0.1)
        yield env.timeout(0.05)
        reply.succeed("paid")

    def client() -> simpy.events.ProcessGenerator:
        for _ in range(CALLS):
            reply = env.event()
            env.process(serve(reply))
            yield reply | env.timeout(2.0)

    env.process(client())
    env.run()
    return CALLS


def refunds(name: str) -> Callable[[], int]:
    """Complete histories of a design, without faults."""

    def run() -> int:
        simulate(getattr(designs, name), faults.Rates(), refunds=REFUNDS)
        return REFUNDS

    return run


def explored() -> int:
    """Histories of SAFE under every single fault, and a part of the pairs."""
    scenario = Scenario.one_refund()
    kinds = ("lose_response", "crash", "pause")
    return explore(designs.SAFE, scenario, max_faults=2, kinds=kinds).schedules


def rate(run: Callable[[], int], times: int = 3) -> float:
    """Units a second of processor time, the best of a few."""
    best = 0.0
    for _ in range(times):
        begun = time.process_time()
        done = run()
        best = max(best, done / (time.process_time() - begun))
    return best


def main() -> None:
    """Prints the table."""
    bare, lean = rate(bare_calls), rate(lean_calls)
    print(f"bare SimPy calls with a timeout   {bare:>10,.0f} a second")
    print(f"the leanest                       {lean:>10,.0f} a second")
    for name, needed in (("NAIVE", 0.10), ("SAFE", 0.02)):
        found = rate(refunds(name))
        print(
            f"{name:<6} refunds                    {found:>10,.0f} a second   "
            f"ratio {found / bare:.3f} (needed {needed:.2f}); to the leanest {found / lean:.3f}"
        )
    print(f"SAFE histories under explore      {rate(explored, 1):>10,.0f} a second")
    profile = cProfile.Profile()
    profile.runcall(explored)
    print("\nWhere the time of explore goes:")
    pstats.Stats(profile).sort_stats("tottime").print_stats(12)


if __name__ == "__main__":
    main()
