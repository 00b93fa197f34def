# Lesson 00. People edit this file; `python3 start.py build` makes the two notebooks from it.

# %% [markdown] id=title
"""
# Start here

**About {{minutes}} minutes.** You will check that everything works, watch one refund, and try the
four things that every lesson is made of: predict, run, check, and ask for a hint.

You need to read a little Python: functions, lists, a `for` loop. Nothing else; everything about
networks and databases is in the lessons.

A notebook is a list of cells. Click into a cell with code and press **Shift + Enter**: it runs,
its result appears below it, and the next cell is chosen. Run them in order, from the top.
"""

# %% id=import
from simulator import designs, replay
from simulator.lessons import check, hint, predict, progress, show

# %% [markdown] id=works
"""
No error? Then everything is installed. (If there was one: close this window, and run
`python3 start.py doctor` in the folder of the course. It names what is missing.)

## The story

**Lantern Books** sells books to schools. **Mira** keeps a school's library; she paid $500 for a
set of atlases, order **ORD-1001**, and they arrived soaked. She asks the shop's assistant, an AI
agent called **Pip**, for her money back. Pip has a tool for that. It calls our service, and the
service asks a **payment provider** to send the money.

You are the engineer who wrote the service. All of it, Mira and the network included, lives in a
simulator, so that you may break whatever you like.

## Predict

Before something important runs, say what will happen. It is written down for you and nobody
else. Being wrong is worth most: those are the results that one remembers.
"""

# %% id=predict
# --- solution
predict.choice("first-refund", "b")
# --- stub
# predict.choice("first-refund")
# --- end

# %% [markdown] id=how-to-predict
"""
Choose with the mouse, or with the Tab key and the space bar.

## Run

`replay` plays one history from beginning to end and keeps all that happened.
"""

# %% id=run
run = replay(designs.NAIVE)
run.ledger[["intent", "order_id", "amount"]]

# %% [markdown] id=ledger
"""
The **ledger** is what the provider has paid: one payment of 500.00. Now your prediction beside it.
"""

# %% id=reveal
predict.reveal("first-refund", run.ledger["amount"].sum())

# %% [markdown] id=picture-first
"""
And here is the whole history as a picture. Each line is somebody, time runs down the page, and each
arrow is a message on its way.
"""

# %% id=picture
show(run)

# %% [markdown] id=check-first
"""
## Check

Here is an exercise. The function should take a list of payments, in cents, and return their
total. Run the cell as it is first. Then put your answer in place of the three dots and run it
again. Try a wrong answer too, on purpose: the check will say what it called, what came back, and
what it expected.
"""


# %% id=total_paid
def total_paid(payments):
    # --- solution
    return sum(payments)
    # --- stub
    # return ...  # your answer, in place of the three dots
    # --- end


check("total_paid", total_paid)

# %% [markdown] id=hint-first
"""
## Ask for a hint

Every exercise has three hints. Run this cell again and you see one more; the last all but gives the
answer.
"""

# %% id=hint
hint("total_paid")

# %% [markdown] id=progress-first
"""
## What is kept

Your predictions and results are kept in a file on this computer, and go nowhere else.
"""

# %% id=progress tags=nbval-ignore-output
progress()

# %% [markdown] id=next
"""
That was all there is to know. Now open **lesson 01, the thousand-dollar refund**, with a double
click in the list at the left. The same refund is played again, and one message gets lost.
"""
