"""
Anomalies in event logs
=======================

A session of a service is a sequence of events. A model of the next event gives each of
them a probability, and unlikely sessions deserve attention. An event need not be a
word: it may be anything that can be a key of a dictionary.
"""

# %%
# Sessions
# --------
# The service is simulated, so that we know which sessions are wrong. A session logs in,
# goes through documents, and logs out. An edit is saved or dropped, and an upload has
# three steps.

import random

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from nplm import EnergyLM, LMDetector, NeuralLM, TextLM, windows

STEPS = {
    "list": [["GET", "/list"]],
    "search": [["GET", "/search"], ["GET", "/list"]],
    "read": [["GET", "/document"]],
    "edit": [["GET", "/document"], ["LOCK", "/document"], ["PUT", "/document"]],
    "drop": [["GET", "/document"], ["LOCK", "/document"], ["UNLOCK", "/document"]],
    "upload": [["POST", "/upload"], ["PUT", "/chunk"], ["POST", "/finish"]],
}


def session(rng):
    """Draw a usual session: a list of events, each a pair."""
    events = [["POST", "/login"]]
    if rng.random() < 0.1:  # a password mistyped, once
        events += [["401", "/login"], ["POST", "/login"]]
    for step in rng.choices([*STEPS], [4, 2, 5, 2, 1, 1], k=rng.randint(2, 8)):
        for event in STEPS[step]:
            # An upload has as many chunks as it needs.
            events += [event] * (rng.randint(1, 4) if "/chunk" in event else 1)
    if rng.random() < 0.8:
        events.append(["POST", "/logout"])
    return [tuple(event) for event in events]


rng = random.Random(0)
usual = [session(rng) for _ in range(3_000)]
train, held_out, test = usual[:2_000], usual[2_000:2_500], usual[2_500:]
for method, path in train[0]:
    print(method, path)

# %%
# Anomalies
# ---------
# Five kinds of sessions break a rule. All of their events but one are known, and most
# of them are odd only by their order.


def broken(rng, kind):
    """Draw a session, and break it."""
    events = session(rng)
    place = rng.randrange(1, len(events))
    if kind == "password tried again and again":
        return events[:1] + [("401", "/login"), ("POST", "/login")] * 6 + events[1:]
    if kind == "written without a lock":
        return events[:place] + [("PUT", "/document")] * 2 + events[place:]
    if kind == "no login":
        return events[1:]
    if kind == "out of order":
        return rng.sample(events, len(events))
    return [*events[:place], ("DELETE", "/document"), *events[place:]]


KINDS = [
    "password tried again and again",
    "written without a lock",
    "no login",
    "out of order",
    "an event never seen",
]
odd = {kind: [broken(rng, kind) for _ in range(100)] for kind in KINDS}

# %%
# A model of the next event
# -------------------------
# A :class:`~nplm.TextLM` takes lists of events as documents. The vocabulary has the
# events of the training sessions, and ``<unk>`` stands for all others. A
# :class:`~nplm.LMDetector` makes an outlier detector of it, with the methods of
# scikit-learn's.
#
# The score of a session is that of its least probable event (``aggregate="min"``),
# because one odd event may hide among many usual ones. The threshold is chosen on
# sessions that the model was not fitted on, and that are not the test sessions, so that
# one usual session in a hundred raises a false alarm (``contamination``).

settings = {"n_hidden": 30, "embedding_dim": 10, "max_iter": 10, "random_state": 0}
paper = {"order": None, "batch_size": 32, "learning_rate_init": 4e-3}
network = NeuralLM.from_paper("MLP9", **paper, **settings)
detector = LMDetector(TextLM(network, n_context=6), contamination=0.01, aggregate="min")
detector.fit(train, X_val=held_out)
lm = detector.estimator_
words, probabilities = lm.next_words([("POST", "/login"), ("GET", "/document")], k=4)
for word, p in zip(words, probabilities):
    print(f"{p:.2f}", *(word if isinstance(word, tuple) else (word,)))

# %%
# ``explain`` tells which events are odd, and which were expected in their place:

for token in detector.explain(odd["written without a lock"][0], n=2, k=2):
    print(f"{token.log_prob:6.2f}  {token.position:2d}  {token.token}")
    for expected, p in zip(token.expected, token.proba):
        print(f"            {p:.2f}  {expected}")

# %%
# What it finds
# -------------
# ``predict`` returns -1 for outliers and 1 for others. The area under the ROC curve
# does not depend on the threshold. Its labels are those of ``predict``, here and in a
# cross-validation with ``scoring="roc_auc"``.

false_alarms = (detector.predict(test) == -1).mean()
print(f"threshold {detector.offset_:.2f}, false alarms in the test {false_alarms:.1%}")
for kind, sessions in odd.items():
    found = (detector.predict(sessions) == -1).mean()
    labels = np.repeat([1, -1], [len(test), len(sessions)])
    area = roc_auc_score(labels, detector.decision_function([*test, *sessions]))
    print(f"{found:4.0%} found, area {area:.3f}  {kind}")

# %%
# The distribution of the scores of each kind, with the threshold:

fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
kinds = {"usual (test)": test} | odd
ax.boxplot(
    [detector.score_samples(sessions) for sessions in kinds.values()],
    orientation="horizontal",
    tick_labels=list(kinds),
    whis=(1, 99),
    flierprops={"marker": "."},
)
ax.axvline(detector.offset_, color="black", linestyle=":")
ax.invert_yaxis()
ax.set_xlabel("log-probability of the least probable event, nats")
plt.show()

# %%
# New types of events
# -------------------
# A new version of the service shows a preview before an edit is saved. That is not an
# anomaly, but the event is unknown, and every such session raises an alarm:

PREVIEW = ("GET", "/preview")


def with_preview(rng):
    events = []
    while PREVIEW not in events:
        events = []
        for event in session(rng):
            events += [PREVIEW, event] if event == ("PUT", "/document") else [event]
    return events


new = [with_preview(rng) for _ in range(210)]
print(f"{(detector.predict(new) == -1).mean():.0%} of the new sessions are alarms")

# %%
# :class:`~nplm.EnergyLM`, the model of the paper's section 5.1, takes new words after
# the fit. It estimates the features of a new event from the contexts in which it was
# met, here in ten sessions.

detector = LMDetector(
    TextLM(EnergyLM(batch_size=32, **settings), n_context=6),
    contamination=0.01,
    aggregate="min",
).fit(train, X_val=held_out)
energy = detector.estimator_
few, many = new[:10], new[10:]


def report(when):
    [scores] = energy.token_scores(few[:1])
    place = few[0].index(PREVIEW)
    alarms = (detector.predict(many) == -1).mean()
    print(f"{when:<15}log-probability of a preview {scores.log_prob[place]:6.2f}, "
          f"{alarms:4.0%} of the other new sessions are alarms")  # fmt: skip


report("unknown:")
energy.add_words(few)
report("added:")

# %%
# The estimate is a start. A few passes over the ten sessions, and over some old ones so
# that the model forgets nothing, train the features of the new event with all others:

stream = np.concatenate(
    [
        [*ids, energy.boundary_]
        for ids in energy.vocabulary_.transform([*few, *train[:100]])
    ]
)
X, y = windows(stream, 6, boundary=energy.boundary_)
for _ in range(5):
    energy.estimator_.partial_fit(X, y)
report("trained on:")

# %%
# A preview in the wrong place is still an anomaly:

misplaced = [[PREVIEW, *events] for events in test[:200]]
print(f"found: {(detector.predict(misplaced) == -1).mean():.0%}")
