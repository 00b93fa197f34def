# Lesson 01. People edit this file; `python3 start.py build` makes the two notebooks from it.
# Its questions, predictions and exercises are in simulator/lessons/lesson_01.py.

# %% [markdown] id=title
"""
# The thousand-dollar refund

*Lesson 01. About {{minutes}} minutes. After sections 1 and 2 of the source lesson, 16.11, which
introduces tool calls that are safe to repeat; you need not have read it.*

After this lesson you can

* tell a side effect from a look-up, whatever the function is called;
* show, message by message, how one lost answer turns $500 into $1,000;
* say how often that happens and what it costs, and check it by counting;
* explain why a service that hears nothing has no right move left.

You need lesson 00, and Python's functions, lists and dicts. You need to know nothing about
networks or databases.
"""

# %% id=import
import pandas as pd

from simulator import designs, faults, replay, simulate
from simulator.lessons import check, predict, progress, question, show

# %% [markdown] id=questions
"""
## Three questions first

Two about tool calls, which the source course treats just before this (if you have not taken it,
guess: each answer comes with its reason), and one about lesson 00, from memory: calling a thing
back to mind is what makes it stay.
"""

# %% id=question-who
# --- solution
question("who-runs-a-tool", "b")
# --- stub
# question("who-runs-a-tool")
# --- end

# %% id=question-twice
# --- solution
question("same-thought-twice", "b")
# --- stub
# question("same-thought-twice")
# --- end

# %% id=question-money
# --- solution
question("who-moves-money", "c")
# --- stub
# question("who-moves-money")
# --- end

# %% [markdown] id=story
"""
## Thursday morning

Tomas keeps the books at Lantern Books. On Thursday morning he stands at your desk with a bank
statement in his hand.

> "Mira from the school library sent back a set of atlases. Order ORD-1001, five hundred dollars.
> Pip refunded her. Fine. But why did we send her a *thousand*?"

You look. Mira asked once. Pip, the agent, called its tool once. In the log there is one line about
a timeout, as on any day. Your service, which you wrote yourself, did exactly what its code says,
and so did everyone else.

The best way to understand such a morning is to cause it again, on purpose, where it costs nothing.

## The tool

This is the tool as the source lesson publishes it, and as you gave it to Pip. Below it is what
Pip's model wrote when Mira asked. That is only text: somebody must decide to act on it, and that
somebody is your service.
"""


# %% id=tool
def issue_refund(order_id: str, amount: float):
    # Payment gateway API call and database update
    ...


tool_call = {
    "name": "issue_refund",
    "arguments": {"order_id": "ORD-1001", "amount": 500},
}

# %% [markdown] id=side-effects
"""
Nothing is wrong with these lines as text. What is dangerous is hidden in the comment: *payment
gateway API call*. To see why, put it beside a harmless tool. A list stands for the bank. Call each
of the two twice, as if the first answer had not reached us.
"""

# %% id=toy
sent = []


def get_order_status(order_id):
    return "delivered"


def send_money(order_id, amount):
    sent.append((order_id, amount))
    return "ok"


# %% id=toy-twice
print(get_order_status("ORD-1001"), get_order_status("ORD-1001"))
print(send_money("ORD-1001", 500), send_money("ORD-1001", 500))

# %% [markdown] id=toy-compare
"""
From the answers you can't tell them apart: each said the same thing twice. But look at the bank.
"""

# %% id=toy-sent
sent

# %% [markdown] id=definition
"""
`send_money` has a **side effect**: it changes something outside itself. A row in a table, a
mailbox, a carrier's invoice, a bank account all count as outside. A tool without side effects is a
**read**, one with them is a **write**.

The difference decides what you may do when an answer is late. Repeat a read, and nothing has
happened. Repeat a write, and it has happened twice.

### Exercise: Pip's tools

Pip has seven tools. Which are reads and which are writes? Ask of each: *if it ran twice by mistake,
would anybody outside notice?*
"""

# %% id=sort_tools
sort_tools = {
    # --- solution
    "get_order_status": "read",
    "issue_refund": "write",
    "search_books": "read",
    "send_apology_email": "write",
    "estimate_refund": "read",
    "buy_return_label": "write",
    "get_voucher_code": "write",
    # --- stub
    # "get_order_status": ...,  # "read" or "write"
    # "issue_refund": ...,
    # "search_books": ...,
    # "send_apology_email": ...,
    # "estimate_refund": ...,
    # "buy_return_label": ...,
    # "get_voucher_code": ...,
    # --- end
}
check("sort_tools", sort_tools)

# %% [markdown] id=naive
"""
## When nothing goes wrong

Your service does for `issue_refund` what most code does. Stripped to its bones:

```python
for attempt in range(3):
    try:
        provider.refund(order_id, amount, timeout=2.0)
        return "Your refund has been paid."
    except CallTimeout:
        continue                 # no answer? send it again
return "Your refund was refused."
```

The complete service is in the folder `simulator/service`; with the choices made here it is called
`designs.NAIVE`. You played it in lesson 00, and here it is again. Time runs down the page. The
customer is Mira, the agent is Pip, `backend-1` is your service, and the provider moves the money.
Each arrow is a message; a dashed one is an answer. The dotted lines are notes that the service
makes in its own database, one before it calls and one after ("transaction committed": the note is
safely written). REF-1 is the provider's number for the payment. What "no key" means comes later.
"""

# %% id=fine
fine = replay(designs.NAIVE)
assert len(fine.ledger) == 1
show(fine)

# %% [markdown] id=lose
"""
One request, one payment, one answer.

## One answer is lost

Now a single thing goes wrong. The provider pays, it answers, and the answer never arrives: a cable,
a restarted router, a proxy that was too busy. Your service waits for its two seconds, and the code
above does what it says.

Before you run it, say what will come out.
"""

# %% id=predict-books
# --- solution
predict.choice("our-books", "c")
# --- stub
# predict.choice("our-books")
# --- end

# %% id=lost
answer_lost = [faults.lose_response("provider.refund")]
lost = replay(designs.NAIVE, faults=answer_lost)
lost.ledger[["intent", "amount", "time"]]

# %% id=lost-show
assert lost.ledger["amount"].sum() == 1000
show(lost)

# %% [markdown] id=lost-read
"""
Two payments, $1,000. `intent-1` is the ledger's name for Mira's one wish. In the picture put your
finger on three places.

1. **The green box.** The money has left. Whatever happens further down can't change that.
2. **The cross.** Only the *news* of it is lost. The payment itself is not undone.
3. **The clock.** Here your code decides. It knows that it asked and that it heard nothing. It takes
   "I heard nothing" for "nothing happened", and asks again.

To the provider the second request is as good as the first. It says "pay $500 for ORD-1001", and
that is what the provider does.
"""

# %% [markdown] id=told
"""
And why did nobody notice? Ask the two who could have: what was Mira told, and how much do our own
books say has been refunded? (`Decimal` is Python's exact number.)
"""

# %% id=lost-told
lost.told["text"][0], lost.books["refunded"][0]

# %% id=reveal-books
predict.reveal("our-books", lost.books["refunded"][0])

# %% [markdown] id=three-views
"""
Mira heard one true sentence. Our books say 500.00, because the service saw one answer. Only the
provider's ledger says 1,000.00, and the shop sees that on a bank statement, days later, if someone
like Tomas reads it. No part lied, and together they are wrong.

The simulator looks at all sides at once, when the history is over, and says what is broken:
"""

# %% id=lost-verdict
lost.verdict

# %% [markdown] id=verdict-words
"""
* `double_refund`: one wish was paid more than once;
* `over_refund`: the order got back more than was paid for it;
* `books_differ`: our books and the provider's ledger disagree.

There are more of these names, and you will meet them as you break things.

### Exercise: what was paid too much

Tomas wants one number at the bottom of his report: how many cents were paid too much. You get the
payments, as a list of `(refund, cents)`, and what is owed, as a dict from refund to cents.

```python
paid = [("refund-1", 50_000), ("refund-2", 30_000), ("refund-1", 50_000)]
owed = {"refund-1": 50_000, "refund-2": 30_000}
overpaid(paid, owed)        # 50_000: refund-1 got its 50,000 twice
```

A refund may also be paid in parts, or not yet, and a payment may belong to no refund at all. (Money
is counted in whole cents here, never as a float.)
"""


# %% id=overpaid
def overpaid(paid, owed):
    # --- solution
    sums = {}
    for refund, cents in paid:
        sums[refund] = sums.get(refund, 0) + cents
    return sum(max(0, total - owed.get(refund, 0)) for refund, total in sums.items())
    # --- stub
    # return ...  # your answer, in place of the three dots
    # --- end


check("overpaid", overpaid)

# %% id=overpaid-run
# Mira's history, as Tomas found it on the statement: how much too much?
payments = [(row.intent, int(100 * row.amount)) for row in lost.ledger.itertuples()]
overpaid(payments, {"intent-1": 50_000})

# %% [markdown] id=how-often
"""
## How often?

One broken history is a story. A shop wants a rate. So let a tenth of the provider's answers be
lost, at random, which is a terrible network, and play many refunds.
"""

# %% id=predict-rate
# --- solution
predict.number("rate", 20)
# --- stub
# predict.number("rate")
# --- end

# %% id=tenth
tenth = simulate(designs.NAIVE, faults.Rates(lose_response=0.1), refunds=4_000)
tenth.frame.query("count > 0").round(4)

# %% id=reveal-rate
predict.reveal("rate", 100 * tenth.rate("double_refund")[0])

# %% [markdown] id=interval
"""
`rate` is the share of the 4,000 refunds. `low` and `high` are its 95 % interval: the rate that we
would find with endlessly many refunds lies between such ends in 19 of 20 experiments. (And
`false_answer`? There all three answers were lost. The service gave up and told Mira that her refund
had failed, after paying it three times.)

The double refund needs no simulator. If the first answer arrives, all is well. If it is lost, and
that happens with probability $p$, a second request is sent, and the refund is paid twice:

$$P(\\text{paid at least twice}) = p$$

How many attempts are allowed does not matter, as long as there are two. But a formula can be wrong,
and so can a simulator. Where they agree, both earn some trust.
"""

# %% id=curve
from simulator.lessons.plots import rate_curve

rows = []
for p in [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]:
    found = simulate(designs.NAIVE, faults.Rates(lose_response=p), refunds=700)
    rows.append(found.frame.assign(design="NAIVE", x=p))
show(rate_curve(pd.concat(rows), closed_form=lambda p: p, draw_caption=False))

# %% [markdown] id=rare
"""
Nobody loses half of the answers. On a good network it may be one in a thousand. Is that worth a
lesson? Guess first.
"""

# %% id=predict-rare
# --- solution
predict.number("rare", 500)
# --- stub
# predict.number("rare")
# --- end

# %% id=reveal-rare
predict.reveal("rare")

# %% [markdown] id=expected
"""
And even that is not quite all. The second answer may be lost as well, and then a third payment is
made.

### Exercise: the average

Every request that is sent is paid; only answers get lost, each with probability `p`. The service
sends at most `attempts` times. How many times is a refund paid, on average? (`p` may be anything
from 0 to 1, both included.)
"""


# %% id=expected_payments
def expected_payments(p, attempts):
    # --- solution
    return sum(p**k for k in range(attempts))
    # --- stub
    # return ...  # your answer, in place of the three dots
    # --- end


check("expected_payments", expected_payments)

# %% id=expected-run
# Your average, and what was counted: payments for each simulated refund.
expected_payments(0.1, 3), tenth.payments / tenth.refunds

# %% [markdown] id=timeout
"""
## What would you do at the timeout?

Back to the clock in the picture. Two seconds are over, nothing came, and it is your move.
"""

# %% id=predict-timeout
# --- solution
predict.choice("at-the-timeout", "b")
# --- stub
# predict.choice("at-the-timeout")
# --- end

# %% [markdown] id=choices
"""
Now each choice is played. To be fair, each is tried twice: with the answer lost, as before, and
with the *request* lost, so that the provider never heard of it. (In Mira's words: "refused" and
"being verified".)

**Send it again** is `NAIVE`; you have seen it. **Give up and say that it failed** is
`designs.ONE_SHOT`. Read what Mira hears at the end, and then what the provider has done.
"""

# %% id=show-give-up
show(replay(designs.ONE_SHOT, faults=answer_lost))

# %% [markdown] id=choice-hope
"""
The shop paid, and tells her that it did not. She will ask again, and be paid again.

**Say that it is done**, since mostly it is. `but` gives the same design with something changed.
This one hopes for the best: `NoRetry` sends once and never again, `outcome_unknown` calls silence
neither failed nor done, and the service's sentence stays "paid" for all that has not failed. Here
the request is lost:
"""

# %% id=show-hope
from simulator.service.retry import NoRetry
from simulator.service.silence import outcome_unknown

hope = designs.NAIVE.but(name="HOPE", retry=NoRetry(), on_silence=outcome_unknown)
request_lost = [faults.lose_request("provider.refund")]
show(replay(hope, faults=request_lost))

# %% [markdown] id=choice-promise
"""
Nobody paid, and Mira is told that somebody did. She waits for money that is not on its way.

**Say that it is being looked into.** At last a true sentence: `FromRecord` tells Mira what the
service has written down, here "not known", and `follow_up=False` means that nobody comes back to
it. Watch how the history ends.
"""

# %% id=show-promise
from simulator.service.answers import FromRecord

promise = hope.but(name="PROMISE", answer=FromRecord(follow_up=False))
show(replay(promise, faults=answer_lost))

# %% [markdown] id=all-choices
"""
That was the last word: the promise is nobody's job. Now all four, in both histories. Three names
are new: `lost_refund`, owed and never paid; `false_answer`, she was told what is not true;
`untold`, the money has moved (or was refused) and nobody told her so; where nothing was paid, it is
`lost_refund`. (`books_differ` stands wherever the provider paid and our service never heard of it:
what it has not heard, it can't write down.)
"""

# %% id=table
choices = {
    "send it again": designs.NAIVE,
    "say that it failed": designs.ONE_SHOT,
    "say that it is done": hope,
    "say that it is looked into": promise,
}
verdicts = pd.DataFrame(index=list(choices))
for title, broken in {"answer lost": answer_lost, "request lost": request_lost}.items():
    runs = [replay(design, faults=broken) for design in choices.values()]
    verdicts[title] = [str(run.verdict) for run in runs]
verdicts

# %% id=reveal-timeout
assert (verdicts == "right").sum().sum() == 1
predict.reveal("at-the-timeout", None)

# %% [markdown] id=why
"""
Look along the rows. Exactly one cell says `right`, and that choice is the one with the double
refund beside it. No row is right twice.

## Why there is no right move

Could a cleverer service look closely, find out which of the two histories it is in, and act
accordingly?
"""

# %% id=predict-apart
# --- solution
predict.choice("tell-apart", "a")
# --- stub
# predict.choice("tell-apart")
# --- end

# %% [markdown] id=seen
"""
Ask the trace, which is the list of everything that happened. Keep only what the service itself can
see: not the faults, and not the messages that died somewhere on the way (what is filtered out, the
service could not see). Times are in microseconds: 2,022,000 is 2.022 s.
"""


# %% id=seen-by-service
def seen_by_service(run):
    own = [event for event in run.trace if event.process == "backend-1"]
    own = [event for event in own if event.kind not in ("fault", "lost")]
    return [(event.time, event.kind, event.what) for event in own]


with_answer_lost = seen_by_service(replay(designs.ONE_SHOT, faults=answer_lost))
with_answer_lost

# %% id=seen-same
with_request_lost = seen_by_service(replay(designs.ONE_SHOT, faults=request_lost))
same = with_answer_lost == with_request_lost
print(same)
predict.reveal("tell-apart", "c" if same else "b")

# %% [markdown] id=two-generals
"""
In one history Mira has her money, in the other she has not, and the service has seen the same. Code
that sees the same does the same. So, as long as the provider takes every request
for a new one, whatever you write at the timeout is wrong in one of the two.

It is not a weakness of your code. Two sides that can only send messages, and may lose them, can
never be sure of each other (Akkoyunlu, Ekanadham and Huber, 1975; later told as the *two
generals*). Retrying more cleverly does not help, and nor does waiting longer.

You may want to *ask* the provider whether it has paid. That is a read, and good if it is offered.
But "not yet" may also mean that your request is still on its way and will be paid a second after
you asked. So asking alone does not do it either; a later lesson comes back to it.

What helps is to change the question. If the provider could see that the second request is *the
first one again*, sending it again would be safe, and you would not need to know which history you
are in. How to make it see that, and how to write it down so that a crash does not forget it, is the
rest of this course.

## Key points

* A **side effect** is a change outside the function. Repeating a read is free; repeating a write
  does it twice.
* A timeout says that nothing came. It does not say that nothing happened.
* With blind retry the share of double refunds **is** the share of lost answers. At 10,000 refunds
  of $500 a day, one in a thousand is $5,000 a day.
* Three parties each knew something true, and the money was gone all the same: compare books with
  the provider's ledger.
* A lost request and a lost answer look the same to the one who waits. No rule for the timeout
  alone, without asking, is right in both.

## What comes next

Losing an answer was one way for a tool call to fail. There are four more, and one of them needs no
network trouble at all: Mira gets impatient and asks again. **Lesson 02, five ways a tool call
fails**, causes each of them on this same order.
"""

# %% id=progress tags=nbval-ignore-output
progress()
