"""Those whom nobody kills: what customers are shown, and what an agent does in silence."""

from __future__ import annotations

from simulator.live.clock import Clock
from simulator.live.people import Agent, BrokerClient, Customers, Wish, start_customers
from simulator.live.web import ask
from simulator.service.answers import Answer
from simulator.service.operations import Operation

WISH = Wish("intent-1", "tenant", "user", "ORD-1001", "50.00")
FAST = 1000.0


def kinds(customers: Customers) -> list[str]:
    return [told.kind for told in customers.told]


def test_an_older_statement_is_not_shown_after_a_newer_one() -> None:
    customers = Customers(Clock.start())
    customers.tell("intent-1", Answer("verifying", "", version=1))
    customers.tell("intent-1", Answer("done", "", version=2))
    customers.tell("intent-1", Answer("verifying", "", version=1))
    customers.tell("intent-2", Answer("verifying", "", version=1))
    customers.tell("intent-1", Answer("conflict", ""))
    assert kinds(customers) == ["verifying", "done", "verifying", "conflict"]


def test_an_agent_that_hears_nothing_tries_every_backend_and_then_says_so() -> None:
    clock = Clock.start(FAST)
    customers = Customers(clock)
    asked: list[int] = []

    def addresses() -> list[str | None]:
        asked.append(1)
        return [None, "http://127.0.0.1:9"]

    answer = Agent(clock, customers, addresses).submit(WISH, 0)
    assert len(asked) == 10, "one try, and nine more"
    assert answer.kind == "verifying"
    assert kinds(customers) == ["verifying"]


def test_an_agent_that_gives_up_does_not_take_back_what_a_follow_up_has_said() -> None:
    clock = Clock.start(FAST)
    customers = Customers(clock)
    customers.tell("intent-1", Answer("done", "", version=2))
    Agent(clock, customers, lambda: [None]).submit(WISH, 0)
    assert kinds(customers) == ["done"]


def test_an_agent_stops_when_the_run_is_over() -> None:
    clock = Clock.start(FAST)
    agent = Agent(clock, Customers(clock), lambda: [None], over=lambda: True)
    assert agent.submit(WISH, 0).kind == "verifying"


def test_the_broker_hands_out_a_message_once_and_forgets_it() -> None:
    operation = Operation("i", "t", "u", "intent-1", "c", "O", 1, "USD", "m", "k", "f")
    with start_customers(Customers(Clock.start())) as server:
        broker = BrokerClient(server.url)
        broker.publish(operation, 5.0, lambda: None)
        assert broker.take(None, 5.0, lambda: None) == operation
        assert broker.take(None, 5.0, lambda: None) is None
        assert ask(server.url, "POST", "/nothing", b"1", timeout=5.0).status == 404
