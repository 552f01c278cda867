"""
Calls of an API: events that are no text
========================================

Any sequence of hashable events has a next one: clicks, chords, moves, calls of an API.
This page takes the calls that the functions of Python's own standard library make, in
their order. It goes from lists of events to suggestions and to generated sequences.
:doc:`/guide/events` has the rules.
"""

# %%
# Real sequences
# --------------
# The source of the standard library is on every machine with Python. A document is a
# function or a method. An event is a call in it, as a pair: the kind and the name.

import ast
import sysconfig
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from nplm import (
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    TextLM,
    Vocabulary,
)


class Calls(ast.NodeVisitor):
    """The calls of a function, in the order in which Python makes them."""

    def __init__(self, function):
        self.events = []
        for statement in function.body:
            self.visit(statement)

    def visit_Call(self, node):
        self.generic_visit(node)  # what is called inside comes first
        if isinstance(node.func, ast.Name):
            self.events.append(("function", node.func.id))
        elif isinstance(node.func, ast.Attribute):
            self.events.append(("method", node.func.attr))

    def visit_FunctionDef(self, node):
        """Leave out functions inside, which are documents of their own."""


library = Path(sysconfig.get_path("stdlib"))
modules = []
for path in sorted([*library.glob("*.py"), *library.glob("*/*.py")]):
    if {"test", "site-packages", "lib2to3"} & {*path.relative_to(library).parts}:
        continue
    functions = [
        Calls(node).events
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.FunctionDef)
    ]
    modules.append([events for events in functions if len(events) >= 2])

parts = np.array(["train"] * 8 + ["valid", "test"])[np.arange(len(modules)) % 10]
train, valid, test = (
    [events for i in np.flatnonzero(parts == part) for events in modules[i]]
    for part in ("train", "valid", "test")
)
print(f"{len(train):,} functions to train on, {len(test):,} to test")
print(*train[0], sep="\n")

# %%
# Whole modules are in one part, so that no test function has a sister in the training
# part. The vocabulary has the events that occur at least three times; all others are
# one event, ``<unk>``.
#
# Which model?
# ------------
# Perplexities of the same events with the same vocabulary compare. ``hits`` is the
# share of calls in 150 functions of the test that are among the five most probable,
# without unknown calls and ends.

network = NeuralLM(
    n_hidden=64, embedding_dim=32, learning_rate_init=4e-3, max_iter=10, random_state=0
)
models = {
    "trigram": InterpolatedTrigram(),
    "Kneser-Ney": KneserNeyLM(4),
    "network": network,
    "network + Kneser-Ney": MixtureLM([("network", network), ("kn", KneserNeyLM(4))]),
}
perplexities, hits = {}, {}
for name, model in models.items():
    lm = TextLM(model, n_context=4, vocabulary=Vocabulary(min_count=3))
    lm.fit(train, X_val=valid)
    perplexities[name] = lm.perplexity(test)
    asked = [
        (events[:i], event)
        for events in test[:150]
        for i, event in enumerate(events)
        if event in lm.vocabulary_.ids_
    ]
    hits[name] = np.mean(
        [event in lm.next_words(before, k=5)[0] for before, event in asked]
    )
    print(f"{name:<22}perplexity {perplexities[name]:6.1f}, hits {hits[name]:.1%}")

fig, ax = plt.subplots(figsize=(6.5, 2.4), layout="constrained")
bars = ax.barh(list(perplexities), perplexities.values())
ax.bar_label(bars, fmt="%.1f", padding=3)
ax.margins(x=0.1)
ax.invert_yaxis()
ax.set_xlabel("test perplexity of a call")
plt.show()

# %%
# Suggestions
# -----------
# ``next_words`` returns events and their probabilities. The end of a function,
# ``</s>``, is an event too; ``exclude`` leaves it out.

for before in (
    [("function", "open")],
    [("method", "acquire")],
    [("function", "isinstance"), ("function", "type")],
):
    events, probabilities = lm.next_words(before, k=4, exclude=["</s>"])
    print("after", *(name for _, name in before))
    for (kind, name), p in zip(events, probabilities):
        print(f"    {p:5.1%}  {kind} {name}")

# %%
# Generated sequences
# -------------------
# ``generate`` draws events until it draws the end. ``min_words`` and ``max_words``
# bound the number of events; the context does not count.

drawn = lm.generate(
    [("function", "open")], n=5, min_words=3, max_words=6, top_p=0.8, random_state=0
)
for events in drawn:
    print("open", *(name for _, name in events), sep=" -> ")
print("lengths:", *map(len, drawn))

# %%
# Odd calls
# ---------
# ``token_scores`` has the log-probability of each event. Here are the first twelve
# calls of a function of the test. Those that the vocabulary lacks are ``<unk>``, and
# the lowest number is that of the least expected call:

[scores] = lm.token_scores([max(test[:150], key=len)[:12]])
for event, log_prob in zip(scores.words, scores.log_prob):
    print(f"{log_prob:6.2f}  {event if isinstance(event, str) else event[1]}")
