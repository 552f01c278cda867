"""Wrong parameters that mypy is to refuse: an unused ``ignore`` is an error.

It finds no types of scikit-learn's base classes, and would then take any parameter.
"""

from typing import TYPE_CHECKING

from nplm import *  # noqa: F403  (type checkers find the names, too)

# ruff: noqa: F405
# pytest imports this file to look for doctests.
if TYPE_CHECKING:
    KneserNeyLM(order=3)
    KneserNeyLM(ordr=3)  # type: ignore[call-arg]
    KneserNeyLM(order="three")  # type: ignore[arg-type]
    NeuralLM(n_hiden=3)  # type: ignore[call-arg]
    Adam(rate=0.1)  # type: ignore[call-arg]
    MixtureLM([("a", KneserNeyLM())], weight=None)  # type: ignore[call-arg]
    TextLM(KneserNeyLM(), contexts=2)  # type: ignore[call-arg]
    LMClassifier(TextLM(KneserNeyLM()), prior=None)  # type: ignore[call-arg]
    LMDetector(TextLM(KneserNeyLM()), contaminated=0.1)  # type: ignore[call-arg]
    Vocabulary(minimum=2)  # type: ignore[call-arg]
    Tokenizer(lower=True)  # type: ignore[call-arg]
    Subwords("bpe", words=300)  # type: ignore[call-arg]
    WordClasses(classes=10)  # type: ignore[call-arg]
    # What scikit-learn's classes have is known.
    WordClasses(n_classes=10).set_output(transform="pandas")
    TextLM(KneserNeyLM()).set_params(estimator__order=2).set_fit_request(X_val=True)
