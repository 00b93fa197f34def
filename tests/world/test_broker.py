from __future__ import annotations

from typing import Any

import pytest

from simulator.world.broker import Broker
from simulator.world.clock import Clock, Life, Task


@pytest.fixture
def broker() -> Broker:
    return Broker(Clock())


class Consumer:
    """Takes so many messages of a broker, in a process of its own."""

    def __init__(self, broker: Broker, name: str, count: int = 10) -> None:
        self.broker, self.life, self.got = broker, Life(name, 1), list[Any]()
        self.task = Task(broker.clock, self.life, self.steps(count), lambda value, error: None)
        self.task.start()

    def steps(self, count: int) -> Any:
        for _ in range(count):
            self.got.append((yield self.broker.take(self.life)))


def publish(broker: Broker, *messages: Any) -> None:
    for at, message in enumerate(messages, 1):
        broker.clock.after(10 * at, lambda _, message=message: broker.publish(message))
    broker.clock.run()


def test_messages_come_in_the_order_in_which_they_were_sent(broker: Broker) -> None:
    consumer = Consumer(broker, "worker-1")
    publish(broker, "m0", "m1", "m2")
    assert consumer.got == ["m0", "m1", "m2"]


def test_messages_wait_for_a_worker(broker: Broker) -> None:
    publish(broker, "m0", "m1")
    consumer = Consumer(broker, "worker-1")
    broker.clock.run()
    assert consumer.got == ["m0", "m1"]


def test_each_message_goes_to_one_worker_the_one_that_has_waited_longest(broker: Broker) -> None:
    one, other = Consumer(broker, "worker-1"), Consumer(broker, "worker-2")
    publish(broker, "m0", "m1", "m2")
    assert (one.got, other.got) == (["m0", "m2"], ["m1"])


def test_a_worker_killed_while_it_waits_takes_no_message_with_it(broker: Broker) -> None:
    # Case B62: an interrupted process leaves its request queued, and the first message goes
    # to nobody: [1, 2] instead of [0, 1, 2].
    dead, alive = Consumer(broker, "worker-1"), Consumer(broker, "worker-2")
    kept = dead.life.kill()
    publish(broker, "m0", "m1", "m2")
    assert kept
    assert (dead.got, alive.got) == ([], ["m0", "m1", "m2"])


@pytest.mark.parametrize("deaths", [1, 3])
def test_a_restarted_worker_gets_every_message_that_comes_after(
    deaths: int, broker: Broker
) -> None:
    graveyard = []
    for _ in range(deaths):
        graveyard += Consumer(broker, "worker-1").life.kill()
    consumer = Consumer(broker, "worker-1")
    publish(broker, "m0", "m1", "m2")
    assert consumer.got == ["m0", "m1", "m2"]
    assert len(broker.waiting) == 1


def test_a_worker_that_stopped_waiting_leaves_no_wish_behind(broker: Broker) -> None:
    # Case B16: get | timeout, the timeout wins, and the orphaned get swallows the next message.
    # Here nobody can stop waiting but by dying or by being served.
    consumer = Consumer(broker, "worker-1", count=2)
    publish(broker, "m0", "m1", "m2")
    assert consumer.got == ["m0", "m1"]
    assert len(broker.waiting) == 0
    assert list(broker.messages) == ["m2"]


def test_a_paused_worker_keeps_the_message_that_it_was_handed(broker: Broker) -> None:
    paused, awake = Consumer(broker, "worker-1"), Consumer(broker, "worker-2")
    paused.life.paused = True
    publish(broker, "m0", "m1")
    assert (paused.got, awake.got) == ([], ["m1"])
    paused.life.resume()
    broker.clock.run()
    assert paused.got == ["m0"]
