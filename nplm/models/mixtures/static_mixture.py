"""Static interpolation: several back-off models of text written as one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nplm.base.array_types import Floats
from nplm.base.blocks import BLOCK_WINDOWS, blocks
from nplm.base.exceptions import parameter_error
from nplm.models.ngrams.stages.mixing import AlignedTrie, mixed_trie
from nplm.models.ngrams.text_ngrams import TextNgrams
from nplm.models.ngrams.trie.work import Work
from nplm.models.training import em
from nplm.text.codecs import codec_of
from nplm.text.words.splitting import Splitter, params_of

if TYPE_CHECKING:
    from nplm.text.lm.text_lm import TextLM


class StaticMixture(NamedTuple):
    """The result of `static_mixture`.

    - `lm`: the mixture, a text model over a `BackoffLM`
    - `weights` (n_models,): weight of each model
    - `n_iter`: number of iterations of EM; 0 if the weights were given
    """

    lm: TextLM
    weights: Floats
    n_iter: int


def static_mixture(
    models: Sequence[TextLM],
    weights: ArrayLike | None = None,
    *,
    X_val: Sequence[object] | None = None,
    max_iter: int = em.MAX_ITER,
    tol: float = em.TOL,
    index: bool = True,
) -> StaticMixture:
    r"""Mix back-off models of text into one (static interpolation).

    The mixture has the n-grams of all models. The probability of each is the weighted
    average of the models' backed-off probabilities,

    .. math:: P(w | c) = \sum_i \alpha_i P_i(w | c),

    and the back-off weights are recomputed so that the probabilities after every
    context sum to 1, as in SRILM's ``ngram -mix-lm``. Words that no n-gram has after a
    context back off in the mixture, so that it is close to a `MixtureLM` of the same
    models, and not equal to it.

    Vocabularies are aligned by their words. A word that a model lacks has probability 0
    in it, as in SRILM: it does not get the probability of the model's ``<unk>``.

    Parameters
    ----------
    models : sequence of TextLM
        Two or more text models over a `KneserNeyLM` or `BackoffLM`, of any orders and
        vocabularies, which split text in the same way.
    weights : array-like of float, shape (n_models,), optional
        Weight of each model, 0 or more, summing to 1. By default they are learned.
    X_val : sequence of documents, optional
        Held-out text, on which EM learns the weights. Words that no model has are
        ``<unk>``; tokens to which all models give probability 0 are left out.
    max_iter : int, default=1000
        Maximum number of iterations of EM, accelerated by Newton's method.
    tol : float, default=1e-7
        EM stops when no weights gain more than this, in nats per token.
    index : bool, default=True
        Whether to build the hash table for look-ups; see ``read_arpa``.

    Returns
    -------
    mixture : StaticMixture

    Raises
    ------
    TypeError
        If a model is not a text model over back-off n-grams.
    ValueError
        If there are fewer than two models, the weights are no distribution over them,
        both or neither of `weights` and `X_val` are given, the models split text in
        different ways, or the symbol of one is a word of another: its ``<UNK>`` for
        unknown words, where a text has the word ``<UNK>``.

    Notes
    -----
    The mixture is made in memory: about 50 bytes for each of its n-grams, beside the
    models. It keeps about 20 of these, and 16 for the hash table. The command
    ``nplm mix`` makes it on disk.

    References
    ----------
    A. Stolcke (2002). SRILM: an extensible language modeling toolkit. ICSLP.

    Examples
    --------
    >>> from nplm import KneserNeyLM, TextLM, static_mixture
    >>> def trained(text):
    ...     return TextLM(KneserNeyLM(discount_fallback=0.5), n_context=2).fit(text)
    >>> cats = trained(["the cat sat on the mat", "a cat sat on a mat"])
    >>> dogs = trained(["the dog ran", "a dog ran to the man"])
    >>> both = static_mixture([cats, dogs], [0.5, 0.5])
    >>> {"cat", "dog"} <= set(both.lm.vocabulary_.words_)
    True
    >>> learned = static_mixture([cats, dogs], X_val=["the cat sat", "a cat ran"])
    >>> bool(learned.weights[0] > learned.weights[1]), learned.n_iter > 0
    (True, True)
    """
    ngrams = _ngrams_of(models)
    mixture, chosen, n_iter = mixed(
        ngrams, weights, X_val, Work(), max_iter=max_iter, tol=tol
    )
    return StaticMixture(mixture.text_lm(index=index), chosen, n_iter)


def mixed(
    models: Sequence[TextNgrams],
    weights: ArrayLike | None,
    X_val: Sequence[object] | None,
    work: Work,
    *,
    names: Sequence[str] | None = None,
    max_iter: int = em.MAX_ITER,
    tol: float = em.TOL,
) -> tuple[TextNgrams, Floats, int]:
    """Mix n-grams as `static_mixture`; return also weights and iterations of EM."""
    names = _names_of(models) if names is None else names
    _check_models(models, names)
    if (weights is None) == (X_val is None):
        passed = "neither" if weights is None else "both"
        raise ValueError(
            f"pass weights, or X_val to learn them on; you passed {passed}."
        )
    union, tries = _aligned(models, names)
    if weights is not None:
        chosen, n_iter = em.checked_weights(weights, len(models)), 0
    else:
        fit = _learned(union, tries, X_val, max_iter, tol, work)
        chosen, n_iter = fit.weights[0], fit.n_iter
    trie = mixed_trie(tries, chosen.tolist(), work)
    return union._replace(trie=trie), chosen, n_iter


def aligned(models: Sequence[TextLM], *, index: bool = True) -> list[TextLM]:
    """Return back-off models of text in one vocabulary, that of all their words.

    They can be members of one `MixtureLM`. Words are aligned as in `static_mixture`:
    one that a model lacks has probability 0 in it.

    Parameters
    ----------
    models : sequence of TextLM
        Two or more text models over a `KneserNeyLM` or `BackoffLM`, of any orders and
        vocabularies, which split text in the same way.
    index : bool, default=True
        Whether to build the hash table for look-ups; see ``read_arpa``.

    Returns
    -------
    models : list of TextLM
        Text models over a `BackoffLM`, which have equal vocabularies.

    Raises
    ------
    TypeError
        If a model is not a text model over back-off n-grams.
    ValueError
        If there are fewer than two models, they split text in different ways, or the
        symbol of one is a word of another.

    Examples
    --------
    A mixture at run time, with weights learned on a held-out text:

    >>> from sklearn.frozen import FrozenEstimator
    >>> from nplm import KneserNeyLM, MixtureLM, TextLM, Vocabulary, aligned
    >>> def trained(text):
    ...     return TextLM(KneserNeyLM(discount_fallback=0.5), n_context=2).fit(text)
    >>> cats = trained(["the cat sat on the mat", "a cat sat on a mat"])
    >>> dogs = trained(["the dog ran", "a dog ran to the man"])
    >>> cats, dogs = aligned([cats, dogs])
    >>> members = [("cats", FrozenEstimator(cats.estimator_)),
    ...            ("dogs", FrozenEstimator(dogs.estimator_))]
    >>> words = Vocabulary.from_words(cats.vocabulary_.words_)
    >>> text = ["the cat sat", "a cat ran"]
    >>> lm = TextLM(MixtureLM(members, "learned"), n_context=2, vocabulary=words)
    >>> lm = lm.fit(text, X_val=text)
    >>> bool(lm.estimator_.weights_[0] > lm.estimator_.weights_[1])
    True
    """
    ngrams, names = _ngrams_of(models), _names_of(models)
    _check_models(ngrams, names)
    union, tries = _aligned(ngrams, names)
    return [union._replace(trie=trie.remapped()).text_lm(index=index) for trie in tries]


def _ngrams_of(models: Sequence[TextLM]) -> list[TextNgrams]:
    return [TextNgrams.of(lm, name) for lm, name in zip(models, _names_of(models))]


def _names_of(models: Sequence[object]) -> list[str]:
    return [f"models[{i}]" for i in range(len(models))]


def _check_models(models: Sequence[TextNgrams], names: Sequence[str]) -> None:
    if len(models) < 2:
        raise ValueError(f"a mixture needs two models or more, got {len(models)}.")
    for name, ngrams in zip(names, models):
        if not _split_alike(ngrams.tokenizer, models[0].tokenizer):
            raise ValueError(
                f"{name} splits text in another way than {names[0]}: their words are "
                "not the same kind of words; train both with the same tokenizer."
            )
        if ngrams.predict_boundary != models[0].predict_boundary:
            raise ValueError(
                f"{name} has predict_boundary={ngrams.predict_boundary}, and "
                f"{names[0]} has {models[0].predict_boundary}: train both alike."
            )


def _split_alike(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, Splitter) and isinstance(b, Splitter):
        return params_of(a) == params_of(b)
    if type(a) is not type(b):
        return False
    # Subwords with equal parameters may have learned different units.
    same = getattr(a, "has_units_of", None)
    return bool(a.get_params() == b.get_params() if same is None else same(b))


def _aligned(
    models: Sequence[TextNgrams], names: Sequence[str]
) -> tuple[TextNgrams, list[AlignedTrie]]:
    """Return n-grams with the words of all models, and their tries in these ids."""
    _check_symbols(models, names)
    known_unknown = (m.words.unknown for m in models if m.words.unknown is not None)
    unknown = next(known_unknown, None)
    end = models[0].words.words[models[0].boundary]
    ids: dict[Any, int] = {}
    columns = []
    for ngrams in models:
        words = list(ngrams.words.words)
        # The two symbols may have other names in another model.
        words[ngrams.boundary] = end
        if ngrams.words.unknown_id is not None:
            words[ngrams.words.unknown_id] = unknown
        columns.append([ids.setdefault(word, len(ids)) for word in words])
    spellings = (ngrams.words.spelling for ngrams in models)
    spelling = next(filter(None, spellings), None)
    union = models[0].with_words(list(ids), unknown, spelling)
    tries = [
        AlignedTrie(ngrams.trie, np.array(column, dtype=np.int32), len(ids))
        for ngrams, column in zip(models, columns)
    ]
    return union, tries


def _check_symbols(models: Sequence[TextNgrams], names: Sequence[str]) -> None:
    """Raise an error if the symbol of a model is another model's word."""
    vocabularies = [ngrams.words for ngrams in models]
    symbols = {
        "the boundary": [m.words.words[m.boundary] for m in models],
        "the symbol for unknown words": [
            None if v.unknown_id is None else v.unknown for v in vocabularies
        ],
    }
    for meaning, of_models in symbols.items():
        if len(set(of_models) - {None}) < 2:
            continue
        for (i, word), (j, vocabulary) in product(
            enumerate(of_models), enumerate(vocabularies)
        ):
            if word in vocabulary.ids and of_models[j] != word:
                roles = (role for role, words in symbols.items() if words[j] == word)
                raise ValueError(
                    f"{word!r} is {meaning} in {names[i]}, and "
                    f"{next(roles, 'an ordinary word')} in {names[j]}: rename it in "
                    "the text of one of them, or train them with the same symbols."
                )


def _learned(
    union: TextNgrams,
    tries: Sequence[AlignedTrie],
    X_val: object,
    max_iter: int,
    tol: float,
    work: Work,
) -> em.MixtureFit:
    """Learn the weights by EM on held-out text."""
    documents = codec_of(union.tokenizer, union.words).encode(X_val, "X_val")
    ends = union.predict_boundary
    if len(documents.ids) == 0 and not (ends and len(documents.lengths)):
        n = len(documents.lengths)
        raise parameter_error(
            "{X_val:X_val} has {0} document{1} and no token: pass held-out text, or "
            "give {weights:the weights}.", n, "s" * (n != 1),
        )  # fmt: skip
    width = max(member.trie.order for member in tries) - 1
    X, y = documents.texts(max(width, 1), union.boundary, ends=ends).windows()
    probs = np.empty((len(y), len(tries)))
    for i, member in enumerate(tries):
        for part in blocks(len(probs), min(work.n_at_random, BLOCK_WINDOWS)):
            probs[part, i] = member.next_word_prob(X[part], y[part])
            work.release_pages(*member.trie.every_array)
    fit = em.fit_mixture_weights(probs, max_iter=max_iter, tol=tol)
    fit.warn_unless_converged("static_mixture", max_iter, tol)
    return fit
