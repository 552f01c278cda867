"""The methods of KenLM's Python module, over the word scorer of any model.

A look-up takes less time than a call of a Python function, so these classes are
compiled, and step by `Steps`. Of a word scorer they call ``begin``, ``full_step``,
``sentence``, ``text`` and ``full_scores``; they return log10.
"""

from cpython.unicode cimport PyUnicode_1BYTE_DATA, PyUnicode_KIND
from libc.math cimport INFINITY, log

from nplm._kernels.ngrams.decoding._word_ids cimport Ids, ids_of

cdef double LN10 = log(10.0)
# log10 of probability 0, as of KenLM for unknown words of a file without <unk>.
cdef double LOG10_ZERO = -100.0

BEGIN, END = "<s>", "</s>"


cdef class Steps:
    """Steps of a word scorer, as other kernels call them.

    A compiled word scorer is a subclass.

    No twin: it has no loop.
    """

    cdef object step_to(self, object own, object word, double* log_prob, int* order):
        """Return the state after a word; set its log-probability and its order.

        The word None is the boundary.
        """
        raise NotImplementedError


cdef class PythonSteps(Steps):
    """Steps of a word scorer that is written in Python.

    No twin: it calls ``full_step``.
    """

    cdef object scorer

    def __init__(self, scorer):
        self.scorer = scorer

    cdef object step_to(self, object own, object word, double* log_prob, int* order):
        log_prob[0], order[0], after = self.scorer.full_step(own, word)
        return after


cdef class State:
    """State of a decoder: the words on which later probabilities depend.

    A new state is the null context. `Model.BeginSentenceWrite`,
    `Model.NullContextWrite`, `Model.BaseScore` and `Model.BaseFullScore` overwrite it.
    Equal states, which have equal hashes, give the same probabilities to all
    continuations. States can be ordered, copied and pickled.

    No twin: holds the state of a word scorer.

    Examples
    --------
    >>> from nplm import kenlm
    >>> kenlm.State() == kenlm.State()
    True
    """

    cdef object own  # of the word scorer; None until it is written

    cdef tuple words(self):
        return () if self.own is None else tuple(getattr(self.own, "words", self.own))

    def __eq__(self, other):
        if not isinstance(other, State):
            return NotImplemented
        if self.own is not None and (<State> other).own is not None:
            return self.own == (<State> other).own
        return self.words() == (<State> other).words()

    def __lt__(self, other):
        if not isinstance(other, State):
            return NotImplemented
        return self.words() < (<State> other).words()

    def __le__(self, other):
        if not isinstance(other, State):
            return NotImplemented
        return self.words() <= (<State> other).words()

    def __gt__(self, other):
        if not isinstance(other, State):
            return NotImplemented
        return self.words() > (<State> other).words()

    def __ge__(self, other):
        if not isinstance(other, State):
            return NotImplemented
        return self.words() >= (<State> other).words()

    def __hash__(self):
        # As of the null context of n-grams.
        return 0 if self.own is None else hash(self.own)

    def __copy__(self):
        return state_of(self.own)

    def __deepcopy__(self, memo):
        return state_of(self.own)  # states of word scorers do not change

    def __reduce__(self):
        return state_of, (self.own,)

    def __repr__(self):
        return f"State{self.words()}"


def state_of(own):
    """Make a `State` of the state of a word scorer.

    No twin: see `State`.
    """
    cdef State state = State.__new__(State)
    state.own = own
    return state


cdef class FullScoreReturn:
    """Score of a word, with the n-gram that it comes from.

    Attributes
    ----------
    log_prob : float
        log10 of the probability.
    ngram_length : int
        Words of the longest n-gram found, the word included. For a model without
        n-grams, the words of its window.
    oov : bool
        Whether the word is unknown to the model.

    No twin: holds three numbers.
    """

    cdef readonly double log_prob
    cdef readonly int ngram_length
    cdef readonly bint oov

    def __init__(self, double log_prob, int ngram_length, bint oov):
        self.log_prob, self.ngram_length, self.oov = log_prob, ngram_length, oov

    def __repr__(self):
        own = f"{self.log_prob!r}, {self.ngram_length!r}, {bool(self.oov)!r}"
        return f"FullScoreReturn({own})"


cdef inline FullScoreReturn full_score_of(double log_prob, int order, bint oov):
    cdef FullScoreReturn score = FullScoreReturn.__new__(FullScoreReturn)
    score.log_prob, score.ngram_length, score.oov = log_prob, order, oov
    return score


cdef class Scores:
    """Scores in log10 from a word scorer: the compiled part of ``nplm.kenlm.Model``.

    Parameters
    ----------
    scorer : word scorer
        Of n-grams, or of windows.
    split : callable
        Splits a string into words.
    blanks : bool
        Whether it splits at blanks.
    ids : dict of word to int, or Ids
        The vocabulary.
    unknown : int
        The id of unknown words; -1 if there is none.
    word_ids : WordIds or None
        The vocabulary by bytes, if the scorer has a method ``text`` that splits strings.

    No twin: it is tested against KenLM's module, and against ``nplm.Scorer``.
    """

    cdef object scorer, split, null, word_ids
    cdef Steps steps
    cdef Ids ids
    cdef int unknown
    cdef bint blanks
    cdef bint has_begin  # whether "<s>" is a word like others

    def __init__(
        self, scorer, split, bint blanks, ids not None, int unknown, word_ids=None
    ):
        self.scorer, self.ids, self.unknown = scorer, ids_of(ids), unknown
        self.word_ids = word_ids
        self.split, self.blanks = split, blanks
        self.steps = scorer if isinstance(scorer, Steps) else PythonSteps(scorer)
        self.has_begin = BEGIN in self.ids
        try:
            self.null = scorer.begin(False)
        except ValueError:  # a model of windows
            self.null = None

    def score(self, sentence, bint bos=True, bint eos=True):
        """Return log10 of the probability of a sentence.

        Parameters
        ----------
        sentence : str or bytes
            The words, without the marks of its beginning and end.
        bos : bool, default=True
            Whether the words begin a sentence. False is an empty context, which only
            back-off n-grams support.
        eos : bool, default=True
            Whether the end of the sentence counts.

        Returns
        -------
        log_prob : float
        """
        cdef str text = text_of(sentence)
        cdef double total
        if self.word_ids is not None and "s>" not in text:
            total = self.scorer.text(self.word_ids, text, bos, eos)
            if total != -INFINITY:
                return total / LN10
        words = self.words_of(text)
        if not has_marks(text, words):
            total = self.scorer.sentence(words, bos, eos)
            if total != -INFINITY:
                return total / LN10
        return sum([score[0] for score in self.pieces(words, bos, eos)])

    def perplexity(self, sentence):
        """Return the perplexity of a sentence, its end counted as a word.

        Parameters
        ----------
        sentence : str or bytes

        Returns
        -------
        perplexity : float
        """
        cdef Py_ssize_t n = len(self.words_of(text_of(sentence))) + 1
        return 10.0 ** (-self.score(sentence) / n)

    def full_scores(self, sentence, bint bos=True, bint eos=True):
        """Return an iterator over the scores of the words of a sentence.

        Parameters
        ----------
        sentence : str or bytes
        bos, eos : bool
            As in `score`.

        Returns
        -------
        scores : iterator of tuple
            For each word log10 of its probability, the length of its n-gram, and
            whether it is unknown, as in `FullScoreReturn`.
        """
        cdef str text = text_of(sentence)
        words = self.words_of(text)
        if has_marks(text, words):
            return iter(self.pieces(words, bos, eos))
        return iter(self.scorer.full_scores(words, 10, LOG10_ZERO, bos, eos))

    def BeginSentenceWrite(self, State state not None):
        """Set a state to the beginning of a sentence.

        Parameters
        ----------
        state : State
        """
        state.own = self.scorer.begin(True)

    def NullContextWrite(self, State state not None):
        """Set a state to the empty context.

        Parameters
        ----------
        state : State

        Raises
        ------
        ValueError
            If the model needs whole windows: only back-off n-grams do without.
        """
        state.own = self.scorer.begin(False)

    def BaseScore(self, State in_state not None, str word not None,
                  State out_state not None):
        """Return log10 of the probability of a word, and write the state after it.

        Parameters
        ----------
        in_state : State
            The state before the word.
        word : str
            The word; ``"</s>"`` ends the sentence, and ``"<s>"``, of probability 0,
            begins one.
        out_state : State
            Overwritten; may be ``in_state``.

        Returns
        -------
        log_prob : float
        """
        cdef double log_prob
        cdef int order
        self.write(in_state, word, out_state, &log_prob, &order)
        return log10_of(log_prob)

    def BaseFullScore(self, State in_state not None, str word not None,
                      State out_state not None):
        """Return the score of a word with its n-gram, and write the state after it.

        Parameters
        ----------
        in_state, word, out_state
            As in `BaseScore`.

        Returns
        -------
        score : FullScoreReturn
        """
        cdef double log_prob
        cdef int order
        self.write(in_state, word, out_state, &log_prob, &order)
        return full_score_of(log10_of(log_prob), order, self.is_unknown(word))

    def __contains__(self, word):
        return not self.is_unknown(text_of(word))

    cdef inline object words_of(self, str text):
        if self.blanks and has_spaces_only(text):
            return text.split()
        return self.split(text)

    cdef inline int write(
        self, State before, str word, State after, double* log_prob, int* order
    ) except -1:
        if word == BEGIN and not self.has_begin:
            log_prob[0], order[0] = -INFINITY, 1  # it is never predicted
            after.own = self.scorer.begin(True)
            return 0
        own = self.scorer.begin(False) if before.own is None else before.own
        if self.is_mark(word):
            self.steps.step_to(own, None, log_prob, order)
            after.own = self.scorer.begin(True) if self.null is None else self.null
        else:
            after.own = self.steps.step_to(own, word, log_prob, order)
        return 0

    cdef inline bint is_mark(self, str word) except -1:
        """Return whether a word ends the sentence; refuse one that begins it."""
        if len(word) < 3 or word[0] != "<":
            return False
        if word == BEGIN and not self.has_begin:
            raise ValueError(
                "'<s>' is the context that begins a sentence, not a word: leave it "
                "out, and use bos=True or BeginSentenceWrite."
            )
        return word == END

    cdef bint is_unknown(self, str word) except -1:
        cdef int i
        if not self.ids.find_word(word, &i):
            return word != BEGIN and word != END
        return i == self.unknown

    cdef list pieces(self, words, bint bos, bint eos):
        """Return the scores of words, among which marks end sentences."""
        cdef list scores = [], piece = []
        for word in words:
            if self.is_mark(word):
                scores += self.scorer.full_scores(piece, 10, LOG10_ZERO, bos, True)
                piece, bos = [], self.null is None
            else:
                piece.append(word)
        return scores + self.scorer.full_scores(piece, 10, LOG10_ZERO, bos, eos)


cdef inline bint has_marks(str text, words) except -1:
    return "s>" in text and (BEGIN in words or END in words)


cdef inline bint has_spaces_only(str text):
    """Return whether a string has printable ASCII characters only."""
    cdef const unsigned char* data
    cdef unsigned char other = 0
    cdef Py_ssize_t i
    if PyUnicode_KIND(text) != 1:
        return False
    data = PyUnicode_1BYTE_DATA(text)
    for i in range(len(text)):
        other |= (data[i] < 0x20) | (data[i] > 0x7e)
    return not other


cdef inline double log10_of(double log_prob) noexcept:
    return LOG10_ZERO if log_prob == -INFINITY else log_prob / LN10


cdef inline str text_of(text):
    if isinstance(text, str):
        return str(text)  # of a subclass, such as NumPy's, too
    if isinstance(text, bytes):
        # A word that is not UTF-8 is unknown.
        return text.decode("utf-8", "surrogateescape")
    raise TypeError(f"a sentence is a str or bytes, got {type(text).__name__}: {text!r}")
