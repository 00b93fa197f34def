"""What people ask for, and of which world: the setting of a history."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

from simulator.service.schemas import EXPONENTS, Session, ToolCall
from simulator.world.checks import needs, whole
from simulator.world.settings import (
    ORDER_ID,
    OTHER_TENANT,
    OTHER_USER,
    TENANT,
    USER,
    AgentSettings,
    ApproverSettings,
    Intent,
    Order,
    Outside,
    ProviderSettings,
    Submission,
    WebhookSettings,
)

__all__ = [
    "ORDER_ID",
    "TENANT",
    "USER",
    "AgentSettings",
    "ApproverSettings",
    "Intent",
    "Order",
    "Outside",
    "ProviderSettings",
    "Scenario",
    "Submission",
    "WebhookSettings",
]


@lru_cache
def plain_amount(amount: int, currency: str) -> str:
    """Minor units as a model writes them: 50000 USD is "500.00"."""
    exponent = EXPONENTS[currency]
    return f"{Decimal(amount).scaleb(-exponent):.{exponent}f}"


def large_order(order_id: str) -> Order:
    """An order for which a refund may need a person's consent: $7,500 captured."""
    return Order(order_id, captured=7_500_00)


@dataclass(frozen=True)
class Scenario:
    """A setting: orders, intents, what is submitted when, and to whom.

    Write your own with the constructor, or change one: `Scenario.one_refund().but(...)`.

    Attributes:
        name: for tables and figures.
        orders, intents, submissions: see there.
        agent, provider, approver: see there.
        outside: what happens to the orders without us.
        poison: intents whose event kills every worker that is about to send it.
        consent_above: whole units of a currency that the shop lets nobody refund alone.
        backends, workers: how many processes of each.

    Raises:
        ValueError: a submission names an intent that does not exist, or an intent an order.
    """

    name: str = "my own"
    orders: tuple[Order, ...] = (Order(),)
    intents: tuple[Intent, ...] = (Intent("intent-1"),)
    submissions: tuple[Submission, ...] = (Submission("intent-1"),)
    agent: AgentSettings = field(default_factory=AgentSettings)
    provider: ProviderSettings = field(default_factory=ProviderSettings)
    approver: ApproverSettings = field(default_factory=ApproverSettings)
    outside: tuple[Outside, ...] = ()
    poison: frozenset[str] = frozenset()
    consent_above: int = 5_000
    backends: int = 2
    workers: int = 2

    def __post_init__(self) -> None:
        orders = {(order.tenant_id, order.id) for order in self.orders}
        intents = {intent.id for intent in self.intents}
        if len(intents) < len(self.intents):
            raise ValueError(f"Scenario {self.name!r}: two intents have one id.")
        for intent in self.intents:
            if (intent.tenant_id, intent.order_id) not in orders and intent.owed:
                raise ValueError(
                    f"Scenario {self.name!r}: intent {intent.id!r} is owed, and its order "
                    f"{intent.order_id!r} is not one of the tenant's orders."
                )
            if len(intent.id) < 8:
                raise ValueError(
                    f"Scenario {self.name!r}: intent id {intent.id!r} is shorter than the 8 "
                    "characters that the lesson's schema asks for."
                )
        needs(self, "workers", whole(self.workers, 1), "a whole number, 1 or more")
        needs(self, "intents", bool(self.intents), "at least one intent")
        instances = {f"backend-{number + 1}" for number in range(self.backends)}
        for submission in self.submissions:
            if submission.intent_id not in intents:
                raise ValueError(
                    f"Scenario {self.name!r}: a submission names intent "
                    f"{submission.intent_id!r}; there are {', '.join(sorted(intents))}."
                )
            if submission.instance not in instances:
                raise ValueError(
                    f"Scenario {self.name!r}: a submission goes to {submission.instance!r}; "
                    f"there are {', '.join(sorted(instances))}."
                )

    @cached_property
    def refund_intents(self) -> frozenset[str]:
        """Ids of the intents that are about money: those for which a refund is asked."""
        asked = {s.intent_id for s in self.submissions if s.tool == "issue_refund"}
        other = {s.intent_id for s in self.submissions if s.tool != "issue_refund"}
        return frozenset(intent.id for intent in self.intents if intent.id not in other - asked)

    @cached_property
    def beside_money(self) -> bool:
        """Whether more than money is at stake: other tools are called, or orders have goods."""
        tools = any(submission.tool != "issue_refund" for submission in self.submissions)
        return tools or any(order.lines for order in self.orders)

    def tool_of(self, intent_id: str) -> str:
        """The tool that the agent calls first for an intent."""
        for submission in self.submissions:
            if submission.intent_id == intent_id:
                return submission.tool
        return "issue_refund"

    def but(self, **changes: Any) -> Scenario:
        """The same scenario with some attributes changed."""
        names = [each.name for each in fields(self)]
        for name in changes:
            if name not in names:
                raise ValueError(f"A scenario has no {name!r}. It has: {', '.join(names)}.")
        return replace(self, **changes)

    def intent(self, intent_id: str) -> Intent:
        """The intent with this id.

        Raises:
            ValueError: there is none.
        """
        try:
            return self._intents[intent_id]
        except KeyError:
            raise ValueError(
                f"Scenario {self.name!r} has no intent {intent_id!r}; "
                f"there are {', '.join(self._intents)}."
            ) from None

    @cached_property
    def _intents(self) -> dict[str, Intent]:
        return {intent.id: intent for intent in self.intents}

    @classmethod
    def one_refund(cls) -> Scenario:
        """A customer asks for $500 back, once."""
        return cls(name="one_refund")

    @classmethod
    def asked_once(cls) -> Scenario:
        """As `one_refund`, but the agent does not call again when it gets no answer."""
        return cls.one_refund().but(name="asked_once", agent=AgentSettings(resubmits=0))

    @classmethod
    def double_click(cls) -> Scenario:
        """The customer clicks twice, 50 ms apart; two instances get one click each."""
        return cls(
            name="double_click",
            submissions=(
                Submission("intent-1"),
                Submission("intent-1", at=0.05, instance="backend-2", thought=2),
            ),
        )

    @classmethod
    def two_partial_refunds(cls) -> Scenario:
        """Two honest refunds of $300 on an order of $500, one second apart. Either may win."""
        return cls(
            name="two_partial_refunds",
            intents=(Intent("intent-1", amount=300_00), Intent("intent-2", amount=300_00)),
            submissions=(
                Submission("intent-1"),
                Submission("intent-2", at=1.0, instance="backend-2"),
            ),
        )

    @classmethod
    def resubmitted_elsewhere(cls) -> Scenario:
        """The agent submits the same call again after ten seconds, to the other instance."""
        return cls(
            name="resubmitted_elsewhere",
            submissions=(
                Submission("intent-1"),
                Submission("intent-1", at=10.0, instance="backend-2"),
            ),
        )

    @classmethod
    def new_thought(cls) -> Scenario:
        """The agent thinks anew after ten seconds, and calls again in other words.

        The refund is $200 of $500, so that no balance stands in the way of a second one.
        """
        return cls(
            name="new_thought",
            intents=(Intent("intent-1", amount=200_00),),
            submissions=(
                Submission("intent-1"),
                Submission("intent-1", at=10.0, thought=2, amount="200.0"),
            ),
            agent=AgentSettings(new_thought=True),
        )

    @classmethod
    def changed_payload(cls) -> Scenario:
        """The same request comes again with another amount: $800 in place of $500.

        The agent is answered first: a wrong amount that comes first is no conflict yet.
        """
        return cls(
            name="changed_payload",
            submissions=(
                Submission("intent-1"),
                Submission("intent-1", at=10.0, thought=2, amount="800.00", after_answer=True),
            ),
        )

    @classmethod
    def declined(cls) -> Scenario:
        """The provider refuses, definitely: the card was closed."""
        return cls(name="declined", provider=ProviderSettings(declines=frozenset({"intent-1"})))

    @classmethod
    def two_equal_refunds(cls) -> Scenario:
        """Two honest refunds of $200 each on one order of $500: equal, and both owed."""
        return cls(
            name="two_equal_refunds",
            intents=(Intent("intent-1", amount=200_00), Intent("intent-2", amount=200_00)),
            submissions=(
                Submission("intent-1"),
                Submission("intent-2", at=10.0, instance="backend-2"),
            ),
        )

    @classmethod
    def two_tenants_one_key(cls) -> Scenario:
        """Two shops have an order of one number, and two models invent one and the same key."""
        return cls(
            name="two_tenants_one_key",
            orders=(Order(), Order(tenant_id=OTHER_TENANT, user_id=OTHER_USER)),
            intents=(
                Intent("intent-1"),
                Intent("intent-2", tenant_id=OTHER_TENANT, user_id=OTHER_USER),
            ),
            submissions=(
                Submission("intent-1", model_key="refund-A"),
                Submission("intent-2", at=10.0, instance="backend-2", model_key="refund-A"),
            ),
        )

    @classmethod
    def late_redelivery(cls) -> Scenario:
        """A queue delivers the tool call again a day later, when the provider has forgotten the
        key. The refund is $200 of $500, so that no balance stands in the way.
        """
        return cls(
            name="late_redelivery",
            intents=(Intent("intent-1", amount=200_00),),
            submissions=(
                Submission("intent-1"),
                Submission("intent-1", at=25 * 3600.0, instance="backend-2"),
            ),
        )

    @classmethod
    def injected_arguments(cls) -> Scenario:
        """Nobody is owed anything: a letter to the model made it call. Once for an order of
        another shop, once for another customer's, once in a session that may not refund.
        """
        return cls(
            name="injected_arguments",
            orders=(
                Order(),
                Order("ORD-1002", user_id=OTHER_USER),
                Order("ORD-2001", tenant_id=OTHER_TENANT, user_id=OTHER_USER),
            ),
            intents=(
                Intent("intent-1", order_id="ORD-2001", owed=False),
                Intent("intent-2", order_id="ORD-1002", owed=False),
                Intent("intent-3", owed=False, permissions=frozenset({"order:read"})),
            ),
            submissions=(
                Submission(
                    "intent-1", arguments={"tenant_id": OTHER_TENANT, "user_id": OTHER_USER}
                ),
                Submission("intent-2", at=10.0),
                Submission("intent-3", at=20.0),
            ),
        )

    @classmethod
    def approval_between(cls) -> Scenario:
        """A person's consent lies between the call and the money. To the first refund of $6,000
        the manager says yes after a minute; the second is never answered.
        """
        return cls(
            name="approval_between",
            orders=(large_order("ORD-7001"), large_order("ORD-7002")),
            intents=(
                Intent("intent-1", order_id="ORD-7001", amount=6_000_00),
                Intent("intent-2", order_id="ORD-7002", amount=6_000_00),
            ),
            submissions=(Submission("intent-1"), Submission("intent-2", at=600.0)),
            approver=ApproverSettings(says=(("intent-2", "nothing"),)),
        )

    @classmethod
    def cancelled_meanwhile(cls) -> Scenario:
        """While $6,000 of $7,500 wait for consent, a colleague cancels the order and pays all of
        it back by hand. Then the manager says yes.
        """
        return cls(
            name="cancelled_meanwhile",
            orders=(large_order("ORD-7001"),),
            intents=(Intent("intent-1", order_id="ORD-7001", amount=6_000_00),),
            submissions=(Submission("intent-1"),),
            outside=(Outside("cancel", at=60.0, order_id="ORD-7001"),),
            approver=ApproverSettings(delay=120.0),
        )

    @classmethod
    def cancelled_after_consent(cls) -> Scenario:
        """The colleague cancels in the milliseconds between the yes and the worker."""
        return cls.cancelled_meanwhile().but(
            name="cancelled_after_consent",
            outside=(Outside("cancel", at=60.0455, order_id="ORD-7001"),),
            approver=ApproverSettings(delay=60.0),
        )

    @classmethod
    def cancelled_under_way(cls) -> Scenario:
        """The colleague cancels while the provider is working on a refund of $200 of $500."""
        return cls(
            name="cancelled_under_way",
            intents=(Intent("intent-1", amount=200_00),),
            outside=(Outside("cancel", at=0.1),),
        )

    @classmethod
    def second_thoughts(cls) -> Scenario:
        """The manager says no to $6,000, and half a minute later, on second thoughts, yes."""
        return cls.cancelled_meanwhile().but(
            name="second_thoughts",
            outside=(),
            approver=ApproverSettings(says=(("intent-1", "no"),), second_thoughts=30.0),
        )

    @classmethod
    def self_approval(cls) -> Scenario:
        """Whoever asks for $6,000 has the manager's permission, too, and says yes."""
        return cls.cancelled_meanwhile().but(
            name="self_approval", outside=(), approver=ApproverSettings(user_id=USER)
        )

    @classmethod
    def charged_back(cls) -> Scenario:
        """While $6,000 of $7,500 wait for consent, the customer's bank takes back $2,000."""
        return cls.cancelled_meanwhile().but(
            name="charged_back",
            outside=(Outside("chargeback", at=60.0, order_id="ORD-7001", amount=2_000_00),),
            provider=ProviderSettings(webhooks=WebhookSettings()),
        )

    @classmethod
    def refunded_by_hand(cls) -> Scenario:
        """Somebody refunds $100 of $500 at the provider's dashboard, whose reports come three
        times. Ten minutes later the customer asks for $450.
        """
        return cls(
            name="refunded_by_hand",
            intents=(Intent("intent-1", amount=450_00),),
            submissions=(Submission("intent-1", at=600.0),),
            outside=(Outside("refund", at=1.0, amount=100_00),),
            provider=ProviderSettings(webhooks=WebhookSettings(succeeded=(0.0, 0.0, 30.0))),
        )

    @classmethod
    def uneven_amounts(cls) -> Scenario:
        """Two customers want $19.99 and 500 yen back: cents that no float holds, and a currency
        that has none.
        """
        return cls(
            name="uneven_amounts",
            orders=(Order(), Order("ORD-3001", captured=50_000, currency="JPY")),
            intents=(
                Intent("intent-1", amount=19_99),
                Intent("intent-2", order_id="ORD-3001", amount=500, currency="JPY"),
            ),
            submissions=(Submission("intent-1"), Submission("intent-2", at=10.0)),
        )

    @classmethod
    def without_permission(cls) -> Scenario:
        """Three sessions ask for a refund, and none may: one may nothing at all, one may read
        refunds, one may cancel orders.
        """
        sessions = (frozenset[str](), frozenset({"refund:read"}), frozenset({"order:cancel"}))
        names = [f"intent-{number + 1}" for number in range(len(sessions))]
        return cls(
            name="without_permission",
            intents=tuple(
                Intent(name, amount=100_00, owed=False, permissions=permissions)
                for name, permissions in zip(names, sessions, strict=True)
            ),
            submissions=tuple(Submission(name, at=10.0 * at) for at, name in enumerate(names)),
        )

    @classmethod
    def flag_in_the_call(cls) -> Scenario:
        """The model writes `confirm: true` into its call for $6,000. Nobody has confirmed it."""
        return cls.cancelled_meanwhile().but(
            name="flag_in_the_call",
            submissions=(Submission("intent-1", arguments={"confirm": True}),),
            outside=(),
        )

    @classmethod
    def consent_without_right(cls) -> Scenario:
        """A colleague says yes to $6,000 who may ask for refunds, and not approve them."""
        return cls.cancelled_meanwhile().but(
            name="consent_without_right",
            outside=(),
            approver=ApproverSettings(permissions=frozenset({"refund:create"})),
        )

    @classmethod
    def charged_back_before(cls) -> Scenario:
        """The customer's bank takes $100 of $500 back. Ten minutes later she asks for $450."""
        return cls.refunded_by_hand().but(
            name="charged_back_before", outside=(Outside("chargeback", at=1.0, amount=100_00),)
        )

    @classmethod
    def keys_mean_nothing(cls) -> Scenario:
        """The provider reads no keys, and refuses to pay back more than was captured."""
        return cls(
            name="keys_mean_nothing",
            provider=ProviderSettings(semantics="none", checks_balance=True),
        )

    @classmethod
    def accepted_then_paid(cls) -> Scenario:
        """The provider accepts the refund, and pays it an hour later."""
        return cls(
            name="accepted_then_paid",
            provider=ProviderSettings(settles_after=3600.0, webhooks=WebhookSettings()),
        )

    @classmethod
    def paid_while_answering(cls) -> Scenario:
        """The provider accepts the refund, and pays it half a second after the caller was told
        that it is being verified: the follow-up may overtake that answer.
        """
        return cls.accepted_then_paid().but(
            name="paid_while_answering",
            provider=ProviderSettings(settles_after=5.5, webhooks=WebhookSettings()),
        )

    @classmethod
    def webhook_storm(cls) -> Scenario:
        """The provider's reports come early, twice, late, and in the wrong order."""
        return cls(
            name="webhook_storm",
            provider=ProviderSettings(
                work=0.5,
                webhooks=WebhookSettings(created=(0.2, 90.0), succeeded=(0.0, 0.0, 30.0)),
            ),
        )

    @classmethod
    def returned_by_the_bank(cls) -> Scenario:
        """The provider accepts the refund, and two days later the bank sends the money back."""
        return cls(
            name="returned_by_the_bank",
            provider=ProviderSettings(
                settles_after=48 * 3600.0,
                fails_to_settle=frozenset({"intent-1"}),
                webhooks=WebhookSettings(),
            ),
        )

    @classmethod
    def cancelled_orders(cls) -> Scenario:
        """Two orders are cancelled with their goods, all or nothing, after a person's consent;
        and the call comes again.
        """
        books = {"order_ids": ["ORD-1001", "ORD-1002"]}
        return cls(
            name="cancelled_orders",
            orders=(
                Order(lines=(("LANTERN-1", 2),)),
                Order("ORD-1002", lines=(("LANTERN-1", 1), ("BOOK-7", 3))),
            ),
            intents=(Intent("intent-1", owed=False, permissions=frozenset({"order:cancel"})),),
            submissions=(
                Submission("intent-1", tool="cancel_orders", arguments=books),
                Submission(
                    "intent-1",
                    at=10.0,
                    instance="backend-2",
                    tool="cancel_orders",
                    arguments=books,
                ),
            ),
        )

    @classmethod
    def deleted_profile(cls) -> Scenario:
        """A customer wants to be forgotten while a refund of hers is still on its way."""
        return cls(
            name="deleted_profile",
            intents=(
                Intent("intent-1"),
                Intent("intent-2", owed=False, permissions=frozenset({"profile:delete"})),
            ),
            submissions=(
                Submission("intent-1"),
                Submission("intent-2", at=0.02, instance="backend-2", tool="delete_profile"),
            ),
        )

    @classmethod
    def cancelled_before(cls) -> Scenario:
        """A colleague cancels an order and puts its goods back. Then the customer asks for it."""
        return cls(
            name="cancelled_before",
            orders=(Order(lines=(("LANTERN-1", 2),)),),
            intents=(Intent("intent-1", owed=False, permissions=frozenset({"order:cancel"})),),
            submissions=(
                Submission(
                    "intent-1",
                    at=60.0,
                    tool="cancel_orders",
                    arguments={"order_ids": ["ORD-1001"]},
                ),
            ),
            outside=(Outside("cancel", at=1.0),),
        )

    @classmethod
    def strangers_goods(cls) -> Scenario:
        """A letter to the model made it cancel another customer's order; then somebody cancels,
        and somebody deletes, whose session may not. Only the last wish is honest: a customer's,
        to be forgotten.
        """
        cancels, deletes = frozenset({"order:cancel"}), frozenset({"profile:delete"})
        reads = frozenset({"order:read"})

        def cancel(intent_id: str, at: float, order_id: str) -> Submission:
            wanted = {"order_ids": [order_id]}
            return Submission(intent_id, at=at, tool="cancel_orders", arguments=wanted)

        return cls(
            name="strangers_goods",
            orders=(
                Order(lines=(("LANTERN-1", 2),)),
                Order("ORD-1002", user_id=OTHER_USER, lines=(("BOOK-7", 3),)),
            ),
            intents=(
                Intent("intent-1", owed=False, permissions=cancels),
                Intent("intent-2", owed=False, permissions=reads),
                Intent("intent-3", owed=False, permissions=reads, user_id=OTHER_USER),
                Intent("intent-4", owed=False, permissions=deletes),
            ),
            submissions=(
                cancel("intent-1", 0.0, "ORD-1002"),
                cancel("intent-2", 10.0, "ORD-1001"),
                Submission("intent-3", at=20.0, tool="delete_profile"),
                Submission("intent-4", at=30.0, tool="delete_profile"),
            ),
        )

    @classmethod
    def poisoned_event(cls) -> Scenario:
        """One event kills every worker that takes it up. Beside it lies a good one."""
        return cls(
            name="poisoned_event",
            intents=(Intent("intent-1", amount=200_00), Intent("intent-2", amount=200_00)),
            submissions=(Submission("intent-1"), Submission("intent-2", at=1.0)),
            poison=frozenset({"intent-1"}),
        )

    def session(self, intent_id: str) -> Session:
        """The session of the customer who wants this."""
        if intent_id not in self._sessions:
            intent = self.intent(intent_id)
            self._sessions[intent_id] = Session(
                intent.user_id, intent.tenant_id, intent.permissions, intent_id
            )
        return self._sessions[intent_id]

    # Sessions and calls are the same in thousands of histories, and cannot be changed.

    @cached_property
    def _sessions(self) -> dict[str, Session]:
        return {}

    @cached_property
    def _calls(self) -> dict[Submission, ToolCall]:
        return {}

    def call(self, submission: Submission) -> ToolCall:
        """The tool call that the model makes of a submission.

        The model fills in the published schema, and so invents a `refund_request_id`.
        """
        if submission not in self._calls:
            self._calls[submission] = ToolCall(
                f"call-{submission.intent_id}-{submission.thought}",
                submission.tool,
                MappingProxyType({**self._filled_in(submission), **dict(submission.arguments)}),
            )
        return self._calls[submission]

    def _filled_in(self, submission: Submission) -> dict[str, Any]:
        if submission.tool != "issue_refund":
            return {}
        intent = self.intent(submission.intent_id)
        amount = submission.amount
        if amount is None:
            amount = plain_amount(intent.amount, intent.currency)
        return {
            "order_id": intent.order_id,
            "amount": amount,
            "refund_request_id": submission.model_key
            or f"refund-{intent.id}-thought-{submission.thought}",
        }
