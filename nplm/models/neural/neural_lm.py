"""NeuralLM, the model of section 2."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import ClassVar, Self

from numpy.typing import ArrayLike

from nplm.base.array_types import AnyArray, Ids
from nplm.base.atomic import read_at_once
from nplm.base.checks import MAX_N_WORDS
from nplm.base.estimators.bases import Whole, hyperparameters
from nplm.base.warnings import warn
from nplm.models.neural.fitted_network import scoring_network, view
from nplm.models.neural.network.hidden import Block
from nplm.models.neural.network_lm import NetworkLM
from nplm.models.neural.options.base import Option
from nplm.models.neural.options.outputs import OUTPUTS
from nplm.models.neural.presets import paper_network, preset_network

# Above it, scoring takes over 30 times as long as training on noise samples.
MANY_WORDS = 100_000


@hyperparameters
class NeuralLM(NetworkLM):
    """Feed-forward neural language model of Bengio et al. (2003), section 2.

    The unnormalised log-probability of every word is equation (1)::

        y = b + W x + U tanh(d + H x)

    where x is the concatenation of the learned feature vectors ``C[w]`` of the words of
    the context, nearest first; a softmax turns y into probabilities.

    The defaults are a recipe to start with on any text: Adam, dropout, noise samples
    for a large vocabulary, a learning rate that falls to 0, and early stopping.
    :doc:`/measured/default` has its figures. `preset` makes other recipes by name, and
    `from_paper` the networks of the paper with their training.

    The parameters come in five groups:

    - **Size**: `order`, `n_words`, `n_hidden`, `embedding_dim`.
    - **Inputs**: `n_distant`, `n_memory`, `features`.
    - **Large vocabularies**: `output`, `loss`.
    - **Training**: `solver`, `learning_rate_init`, `alpha`, `dropout`, `batch_size`,
      `max_iter`, `early_stopping`, `validation_fraction`, `n_iter_no_change`, `tol`,
      `shuffle`.
    - **Running**: `n_jobs`, `parallel`, `precision`, `warm_start`, `random_state`,
      `verbose`.

    Parameters
    ----------
    order : int or None, default=None
        The n of the model, which uses the nearest ``order - 1`` words. None uses every
        column of X.
    n_words : int or None, default=None
        Size of the vocabulary. None takes the largest id of the training windows plus
        one.
    n_hidden : int or array-like of int, default=320
        Number of hidden units, h. 0 needs direct connections. Further numbers add
        residual blocks above the hidden layer, each with this many rectified units:
        (400, 800, 800) has 400 hidden units and two blocks (:ref:`blocks`).
    embedding_dim : int, default=144
        Number of features of a word, m.
    n_distant : int, default=0
        Number of words, nearest first, whose averaged features are further inputs. Each
        average has trained weights by position (``P_``), initially with a half-life of
        2, 8, 32, ... words. X then needs this many columns, and `order` must be set. 0
        is the network of the paper.
    n_memory : int, default=0
        Number of words of a window over which the hidden units remember, more than the
        ``order - 1`` or `n_distant` words that they see; 0 is the network of the paper.
        The hidden units are then LSTM cells: each has a state, and gates that decide at
        each word how much of it is kept and how much the output sees
        (:ref:`hidden-memory`). `order` must be set. Training takes the windows in the
        order of X, which should be that of the text. Scores of windows reach back over
        this many columns of X, those of streams (`fit_stream`, `score_stream`) to the
        start of the text.
    features : {"learned"} or Features, default="learned"
        Features of the words: initial values, whether training changes them, what words
        share, and the number of senses. See `Features`.
    output : {"softmax", "classes", "tree"}, Softmax, Classes or Tree, default="softmax"
        The output (section 5.2): `Softmax`, equation (1), which may have direct
        connections or be tied to the features; `Classes` of words; or a `Tree` of
        words. :doc:`/guide/outputs` helps to choose. With more than 100,000 words a fit
        of the default warns that it scores slowly.
    loss : {"auto", "exact", "importance", "nce"}, Exact, Importance or NCE, \
default="auto"
        The training loss: the `Exact` log-likelihood of the paper, or an estimate from
        noise samples, by `Importance` sampling or `NCE`, which is many times as fast
        with a large vocabulary. Each trains the same network.

        "auto" is "importance" for a softmax over a vocabulary of more than 2,048 words.
        Else it is "exact", except for tied features with ``parallel`` other
        than "sync", which need noise samples. `n_jobs` has no influence. ``loss_`` has
        the choice.
    solver : {"adam", "sgd"}, Adam or SGD, default="adam"
        How the parameters follow their gradients, and the schedule of the learning
        rate. `SGD` is the paper's.
    learning_rate_init : float, default=4e-3
        Learning rate at the start. For `SGD` it is that of the gradient of one
        example, 1e-3 in the paper.
    alpha : float or "auto", default="auto"
        Weight decay of C, H, U, W, F, R, G, S, Q, of H and U of residual blocks, and of
        the features that words do not share, but not of biases nor of P: each example
        (`Adam`: each update) subtracts the learning rate times `alpha` times the
        weight. "auto" is 1e-4 with `SGD`, as in the paper, and ``6 / sqrt(n)`` with
        `Adam`, where n is the number of updates of an epoch: small corpora need
        more. It is at most ``0.01 / learning_rate_init``.
    dropout : float or array-like of float, shape (3,), default=(0.05, 0.1, 0.15)
        Dropout rates of the features x, of the hidden units (and of the units of each
        residual block), and of the projection R of a tied output; one number is the
        rate of all three. Each training example drops random values and scales up the
        others (Srivastava et al., 2014), against overfitting; with `n_memory`, the
        consecutive examples of a mini-batch drop the same ones (Gal and Ghahramani,
        2016). Scoring drops nothing.
    batch_size : int, default=256
        Examples of an update. `SGD` adds their gradients, so that the learning rate
        stays that of one example; `Adam` takes the mean. 1 is the algorithm of the
        paper (section 3.2).
    max_iter : int, default=100
        Epochs, passes over the training windows, at most. The default schedule of the
        learning rate ends a fit after fewer (see `Adam`).
    early_stopping : {"auto"} or bool, default="auto"
        Stop when the held-out loss stops improving, and keep the weights of the best
        epoch. Without ``X_val`` in `fit`, True holds out the last `validation_fraction`
        of the windows, and so does "auto" with 100 windows or more. False trains
        all epochs and keeps the last weights; so does "auto" with fewer windows.
    validation_fraction : float, default=0.1
        See `early_stopping`.
    n_iter_no_change : int, default=1
        Number of epochs without improvement before training stops early.
    tol : float, default=1e-3
        Minimum improvement of the held-out loss, in nats per token.
    shuffle : bool, default=True
        Whether to shuffle the examples of each epoch. With `n_memory` they stay in the
        order of X, and each epoch begins at another one.
    n_jobs : int or None, default=None
        Number of threads; -1 is the number of cores. None is 1, or the number of
        ``joblib.parallel_config("threading", n_jobs=...)``.
    parallel : {"sync", "async", "locked"}, default="sync"
        How the threads of a fit share the work (section 3 of the paper). With "sync"
        they compute each mini-batch together, and fits are reproducible: each thread
        has a block of the output units, or some of the examples, at least 8 of them
        (:doc:`/guide/parallel`). With "async" each thread has mini-batches of its own
        and updates the parameters without a lock. No thread waits, but fits are not
        reproducible, because part of an update is sometimes lost. "locked" is "async"
        with a lock around updates, the first attempt of the paper, which is slow.
    precision : {"auto", "float32", "float64", "bfloat16"}, default="auto"
        Type of the parameters and of the arithmetic. "bfloat16" rounds the factors of
        matrix products to 8 bits of precision, in training and in scoring: those of the
        hidden units, of a projection, and of the output units of a `Softmax`.
        Parameters and sums are in float32. It requires a processor that multiplies
        bfloat16 (AMX, AVX512_BF16), and mini-batches are faster there. A fitted model
        may change between "bfloat16" and "float32".

        "auto" is "bfloat16" on such a processor for a `Softmax`, if `batch_size` is 16
        or more and output units have 64 weights or more; else it is "float32". So
        another processor may train in another precision, which ``precision_`` has.
        Training that continues keeps it, and so do scores, on such a processor.
    warm_start : bool, default=False
        Whether `fit` continues from the weights of the previous fit.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights and the order of examples. Fits with the same seed,
        `n_jobs` and machine have the same bits, unless several threads train with
        ``parallel="async"`` or "locked". Scores have the same bits for any `n_jobs`,
        and for a window alone or among others.
    verbose : int, default=0
        1 prints a line per epoch and a minute, 2 shows a progress bar in a notebook, on
        a terminal, or as lines of a log.

    Attributes
    ----------
    C_ : ndarray, shape (n_words_, embedding_dim)
        Feature vectors of the words. With ``word_features`` the attribute can be set,
        but the array is read-only.
    H_ : ndarray, shape (n_hidden, (order_ - 1) * embedding_dim)
        Hidden weights; the first `embedding_dim` columns are those of the nearest word.
        With `n_distant`, H_ and W_ have `embedding_dim` more columns for each average.
    d_ : ndarray, shape (n_hidden,)
        Hidden biases.
    blocks_ : tuple of Block
        The residual blocks, each a named tuple of arrays: H, shape (width, n_hidden),
        d, shape (width,), and U, shape (n_hidden, width). Values can be written into
        the arrays.
    U_ : ndarray, shape (n_words_, n_hidden), or None
        Hidden-to-output weights; None with ``tied``.
    W_ : ndarray, shape (n_words_, (order_ - 1) * embedding_dim), or None
        Direct connections; None without them, and with ``tied``.
    b_ : ndarray, shape (n_words_,)
        Output biases.
    word_classes_ : ndarray of int32, shape (n_words_,), or None
        The class of each word, numbered without gaps, with `Classes`. The
        rows of U_, W_ and b_ are then the classes, followed by the words in the order
        of ``np.argsort(word_classes_, kind="stable")``.
    tree_ : ndarray of int32, shape (n_words_ - 1, 2), or None
        The binary tree, with `Tree`: the children of each inner node, the root first.
        The rows of U_, W_ and b_ are branches, node by node. With ``n_branches=2``,
        rows 2i and 2i + 1 are the branches to the children of row i; with more, every
        second, third, ... level of inner nodes stays.
    V_ : ndarray, shape (3 * n_hidden, n_hidden), or None
        Weights of the LSTM cells' activations after the word before: rows of the gates
        that keep the state, of the gates that output it, and of the new values. H_ and
        d_ then have as many rows. None without `n_memory`.
    P_ : ndarray, shape (n_averages, n_distant), or None
        Weights of distant words by position, the nearest first; None without them.
    S_, Q_ : ndarray, shape (min(n_words_, 2001), n_senses * embedding_dim), or None
        Senses, one after the other, and the weights that select them: a row for each
        of the first words, and a last one for all others; None with one sense.
    R_ : ndarray, shape (embedding_dim, n_hidden), or None
        The projection of ``tied``, with further columns for direct connections.
    G_ : ndarray, shape (n_features, embedding_dim), or None
        Features that words share; None without ``word_features``.
    n_parameters_ : int
        Number of free parameters: ``|V|(1 + nm + h) + h(1 + (n-1)m)`` with direct
        connections and without `n_distant` and `n_senses`.
    n_iter_ : int
        Epochs run since the weights were drawn: a `partial_fit` or a fit with
        `warm_start` adds its own. Early stopping may keep an earlier one's weights.
    n_seen_ : int
        Examples seen, the t of the schedule.
    words_per_second_ : float
        Examples seen a second of training, all threads and processes together.
    history_ : dict of list
        Lists with an entry per epoch: ``loss`` (mean negative log-likelihood of each
        training example just before its update) and ``val_loss`` (NaN without held-out
        data), both in nats per token, ``seconds`` of training and ``scoring_seconds``
        of scoring held-out windows after it. ``loss`` includes dropout; with importance
        sampling it is an estimate, too low with few noise samples; with NCE it is not
        normalised. ``val_loss`` is always normalised, and is that of a fixed sample of
        50,000 windows if more are held out. Importance sampling adds ``n_noise`` and
        ``effective_samples`` at the end of the epoch.
    val_loss_ : float
        Loss of the fitted weights on all held-out windows, in nats per token. NaN
        without held-out data, and after an interrupt, `partial_fit` or `Trainer.keep`.
    loss_ : Exact, Importance or NCE
        The loss that training followed: what "auto" came to.
    precision_ : {"float32", "float64", "bfloat16"}
        The precision of the arithmetic that trained the model last.
    order_, n_words_, classes_, n_features_in_
        The order in use, the vocabulary size, the word ids, the columns of X.

    See Also
    --------
    InterpolatedTrigram, KneserNeyLM : The n-gram models of the paper.
    MixtureLM : Mixes the probabilities of models.

    References
    ----------
    Bengio, Ducharme, Vincent and Jauvin (2003), A Neural Probabilistic Language
    Model, JMLR 3:1137-1155: sections 2, 3.2 and 5.1, equation (1).

    Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov (2014), Dropout: a
    simple way to prevent neural networks from overfitting, JMLR 15:1929-1958.

    Gal and Ghahramani (2016), A theoretically grounded application of dropout in
    recurrent neural networks, NIPS 29.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import NeuralLM, windows
    >>> X, y = windows(np.tile([0, 1, 2, 3], 50), 2)
    >>> lm = NeuralLM(n_words=4, n_hidden=8, embedding_dim=4, dropout=0,
    ...               learning_rate_init=0.05, random_state=0).fit(X, y)
    >>> lm.predict([[0, 1], [2, 3]]).tolist()
    [2, 0]
    >>> bool(lm.perplexity(X, y) < 1.5)
    True
    """

    _outputs = OUTPUTS
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **NetworkLM._parameter_constraints,
        "dropout": [Real, "array-like"],
        "n_hidden": [Whole(0), "array-like"],
        "n_memory": [Whole(0, MAX_N_WORDS)],
    }

    n_hidden: int | Sequence[int] = 320
    embedding_dim: int = 144
    n_memory: int = 0
    features: str | Option = "learned"
    output: str | Option = "softmax"
    dropout: float | ArrayLike = (0.05, 0.1, 0.15)

    @classmethod
    def from_paper(cls, name: str, **changes: object) -> Self:
        """Make a network of the paper's tables, with the training of the paper.

        Each update has one example, the learning rate is ``1e-3 / (1 + 1e-8 t)``, and
        the weight decay is 1e-4 for at most 20 epochs on Brown, and 1e-5 for at most 5
        on AP News (section 4.2). Held-out windows stop it early (`early_stopping`).

        Parameters
        ----------
        name : {"MLP1", "MLP3", "MLP5", "MLP7", "MLP9", "AP"}
            Row of Table 1, or "AP" for the network of Table 2. The rows with even
            numbers are mixtures: `MixtureLM` of one of these and
            `InterpolatedTrigram`.
        **changes
            Parameters to add or replace, such as ``batch_size=32``, which is much
            faster. An option such as ``solver=Adam()`` is used unchanged.

        Returns
        -------
        lm : NeuralLM
            The unfitted model.

        Raises
        ------
        ValueError
            If no network of the paper has that name.

        Examples
        --------
        >>> from nplm import NeuralLM
        >>> lm = NeuralLM.from_paper("MLP9", n_words=17_907)
        >>> lm.order, lm.n_hidden, lm.embedding_dim, lm.batch_size
        (5, 100, 30, 1)
        >>> lm.solver
        SGD(learning_rate='invscaling')
        """
        return cls._with_changes(paper_network(name), changes)

    @classmethod
    def preset(cls, name: str, **changes: object) -> Self:
        """Make a network by the name of a preset.

        Parameters
        ----------
        name : {"small", "default", "large_vocabulary", "distant", "memory"}
            "default" has the defaults, "small" also, with the sizes of a small
            network of the rules of `AutoLM`, for texts of up to about a hundred
            thousand words, and "distant" averages the features of the last 128 words,
            too, for texts with lasting topics. The others are networks of these rules,
            with LSTM cells and output weights tied to the features, for running text in
            its order: "memory" for a million words, and "large_vocabulary" for more.
            Their learning rate falls to 0 over `max_iter` epochs, 7 and 4 unless you
            set it. Calls of `partial_fit` are an epoch each, and end there, too: for
            more set ``solver__learning_rate="constant"``. The two and
            "distant" need X with 128 columns.
        **changes
            Parameters to add or replace.

        Returns
        -------
        lm : NeuralLM
            The unfitted model.

        Raises
        ------
        ValueError
            If there is no preset of that name.

        Examples
        --------
        >>> from nplm import NeuralLM
        >>> NeuralLM.preset("large_vocabulary", n_words=50_000).output
        Softmax(direct=True, tied=True)
        """
        return cls._with_changes(preset_network(name), changes)

    @classmethod
    def _with_changes(
        cls, params: dict[str, object], changes: dict[str, object]
    ) -> Self:
        """Return a network with parameters and changes, which replace whole options."""
        taken = {k: v for k, v in params.items() if k.partition("__")[0] not in changes}
        return cls().set_params(**(taken | changes))

    # -- the fitted network -----------------------------------------------------

    def _advise(self, n_words: int) -> None:
        # A `Softmax` or a loss was chosen; the string and "auto" are the defaults.
        if n_words > MANY_WORDS and self.output == "softmax" and self.loss == "auto":
            warn(
                f"NeuralLM: a softmax over n_words={n_words} trains fast on noise "
                "samples, but each score takes the output units of all words; with "
                'much text to score, output="classes" is tens of times as fast. Set '
                "output=Softmax() to keep the softmax without this warning.",
                UserWarning,
            )

    @read_at_once
    def hidden(self, X: ArrayLike) -> AnyArray:
        """Return the hidden activations after each context.

        With ``output__tied`` these are the projected ones, of the length of a word's
        features.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.

        Returns
        -------
        hidden : ndarray, shape (n_samples, n_hidden) or (n_samples, embedding_dim)

        Raises
        ------
        ValueError
            If the network has no hidden units.

        Examples
        --------
        >>> import numpy as np
        >>> from nplm import NeuralLM, windows
        >>> X, y = windows(np.tile([0, 1, 2, 3], 50), 2)
        >>> lm = NeuralLM(n_hidden=8, max_iter=1, random_state=0).fit(X, y)
        >>> lm.hidden([[0, 1], [2, 3]]).shape
        (2, 8)
        """
        X = self._check_X(X)
        if self._trained.parts.hidden.n_activations == 0:
            raise ValueError("the network has no hidden units (n_hidden=0).")
        return scoring_network(self).hidden(X)

    @property
    def blocks_(self) -> tuple[Block, ...]:
        """The arrays H, d and U of each residual block."""
        return Block.all_of(self._fit_result("blocks").parameters.more)

    @property
    def word_classes_(self) -> Ids | None:
        """The class of each word, or None without classes."""
        return self._fit_result("word_classes").architecture.output.classes

    @property
    def tree_(self) -> Ids | None:
        """The children of each inner node, or None without a tree."""
        return self._fit_result("tree").architecture.output.tree

    V_ = view("V", "Weights of the activations before, or None.")
    U_ = view("U", "Hidden-to-output weights, or None.")
    W_ = view("W", "Direct connections, or None.")
    S_ = view("S", "Senses of words, or None.")
    Q_ = view("Q", "Weights that select the senses, or None.")
    R_ = view("R", "Projection to the features, or None.")
    G_ = view("G", "Features that words share, or None.")
