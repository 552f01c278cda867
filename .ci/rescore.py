"""Weights are tuned on word error rate and BLEU; the model of a decoder scores."""

import sys

from nplm import InterpolatedTrigram, Rescorer, TextLM, flashlight_lm

lm = TextLM(InterpolatedTrigram(), 2).fit(["to be or not to be"] * 9)
lists = [[("two be or not", -1.0), ("to be or not", -1.2), ("to bee or not", -1.3)]]
for metric in ("wer", "bleu"):
    rescorer = Rescorer(lm, metric=metric).fit(lists, ["to be or not"])
    assert rescorer.predict(lists) == ["to be or not"]
    print(f"{metric}: {rescorer.metric_value_:.1f}")

if sys.version_info < (3, 13):  # the last one that flashlight-text has wheels for
    decoder_lm = flashlight_lm(lm, ["to", "be"])
    start = decoder_lm.start(False)
    scores = [decoder_lm.score(start, i)[1] for i in range(2)]
    assert scores[0] > scores[1], scores
    print(f"log10 of words at the beginning: {scores}")
