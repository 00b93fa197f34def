"""The agent: turns what a customer wants into tool calls, and tells what it hears.

It is not to be trusted with the money. When it hears nothing it submits again, as its
framework would after a restart, or as its model would in a new turn.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simulator.service.answers import Answer
from simulator.service.errors import Silence
from simulator.service.operations import REFUND
from simulator.world.scenario import Submission

if TYPE_CHECKING:
    from simulator.service.schemas import Session, ToolCall
    from simulator.world.runtime import VirtualRuntime
    from simulator.world.scenario import Scenario
    from simulator.world.world import World

__all__ = ["ACCESS", "ToolRequest", "converse"]

LONGEST_WAIT = 2 * 3600.0

ACCESS = "access"
"""What a 403 speaks of: what may be touched, and not how a wish ended."""


class ToolRequest:
    """A tool call on its way to an instance, and the session that it travels with."""

    __slots__ = ("call", "instance", "session")

    def __init__(self, call: ToolCall, session: Session, instance: str) -> None:
        self.call = call
        self.session = session
        self.instance = instance


def converse(rt: VirtualRuntime, world: World, submission: Submission, before: Any) -> Any:
    """One turn of the agent: submit, wait, submit again after silence, tell the customer.

    `before` is the end of the turn that has to be over first, or None.
    """
    if before is not None and not before.triggered:
        yield before
    scenario = world.scenario
    settings = scenario.agent
    instance = submission.instance
    if submission.at > rt.now():
        yield from rt.sleep(submission.at - rt.now())
    world.note("customer", "submit", submission.intent_id, "agent", text=world.wish(submission))
    for turn in range(settings.resubmits + 1):
        anew = turn if settings.new_thought else 0
        call = scenario.call(rethought(scenario, submission, anew))
        request = ToolRequest(call, scenario.session(submission.intent_id), instance)
        try:
            answer = yield from rt.call(f"tool.{call.name}", request, settings.patience)
            break
        except Silence:
            yield from rt.sleep(min(LONGEST_WAIT, 2.0**turn))
        if settings.elsewhere:
            instance = world.other_instance(instance)
    else:
        # Older than anything that the service says: it takes nothing back.
        answer = Answer("verifying", "I have no answer yet.", version=0)
    about = REFUND if submission.tool == "issue_refund" else submission.tool
    if answer.code == "forbidden":
        about = ACCESS  # another call, of what is the customer's own, may yet succeed
    world.tell(submission.intent_id, answer, about)


def rethought(scenario: Scenario, submission: Submission, times: int) -> Submission:
    """The same submission, thought anew so many times: the same money, written another way.

    What the submission itself says to write stays.
    """
    if times == 0:
        return submission
    arguments = dict(submission.arguments)
    if submission.tool == "issue_refund":
        arguments.setdefault("amount", scenario.respelled(submission, times))
    return replace(submission, thought=submission.thought + 10 * times, arguments=arguments)
