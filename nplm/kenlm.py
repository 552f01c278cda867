"""The interface of KenLM's Python module, for every model of nplm.

A program that was written for the module changes its import::

    import nplm.kenlm as kenlm

Scores are log10, and text is split into words at blanks, or as the model was trained.

Examples
--------
>>> import nplm
>>> from nplm import kenlm
>>> lm = nplm.TextLM(nplm.InterpolatedTrigram(), 2).fit(["a rose is a rose"] * 9)
>>> nplm.save(lm, "model.nplm")
>>> model = kenlm.Model("model.nplm")
>>> state, after = kenlm.State(), kenlm.State()
>>> model.BeginSentenceWrite(state)
>>> total = 0.0
>>> for word in ["a", "rose", "is"]:
...     total += model.BaseScore(state, word, after)
...     state, after = after, state
>>> abs(total - model.score("a rose is", eos=False)) < 1e-6
True
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from nplm._kernels.ngrams.decoding._kenlm import FullScoreReturn, Scores, State
from nplm.formats.open_model import open_model
from nplm.text.codecs import Text
from nplm.text.lm.scorer import Scorer, splitter_of
from nplm.text.words.splitting import BETWEEN_BLANKS, Splitter

if TYPE_CHECKING:
    from nplm import TextLM

__all__ = [
    "ARPALoadComplain",
    "Config",
    "FullScoreReturn",
    "LanguageModel",
    "LoadMethod",
    "Model",
    "State",
]


class LoadMethod:
    """How `Model` reads a file that can be mapped into memory.

    ``LAZY``, ``POPULATE_OR_LAZY`` and ``POPULATE_OR_READ`` map a binary file of
    ``save_binary``, which is read where it is used. ``READ`` and ``PARALLEL_READ`` read
    all of it into memory of this process, in large pages where the system has them: a
    model that is in use for long then answers faster.
    """

    LAZY = 0
    POPULATE_OR_LAZY = 1
    POPULATE_OR_READ = 2
    READ = 3
    PARALLEL_READ = 4


class ARPALoadComplain:
    """When KenLM advises binary files. nplm gives no such advice."""

    ALL = 0
    EXPENSIVE = 1
    NONE = 2


class Config:
    """Options of `Model`.

    Attributes
    ----------
    load_method : int, default=LoadMethod.POPULATE_OR_READ
        One of `LoadMethod`.
    show_progress : bool, default=True
        Without effect: there is no progress bar.
    arpa_complain : int, default=ARPALoadComplain.ALL
        Without effect: there is no advice.

    Examples
    --------
    >>> from nplm import kenlm
    >>> config = kenlm.Config()
    >>> config.load_method = kenlm.LoadMethod.LAZY
    """

    def __init__(self) -> None:
        self.load_method = LoadMethod.POPULATE_OR_READ
        self.show_progress = True
        self.arpa_complain = ARPALoadComplain.ALL


class Model(Scores):
    """A language model with the methods of KenLM's.

    Parameters
    ----------
    path : str, bytes or path-like
        An ARPA file, a binary file of KenLM's ``build_binary`` or of
        ``nplm.formats.save_binary``, or a file of `nplm.save` with a `TextLM` of words:
        of n-grams, a network, classes, or a mixture.
    config : Config, optional
        How to read it.
    verify : bool, default=False
        As of `nplm.load`: whether to check all of a binary file of ``save_binary``
        first, which may be damaged or is not your own. KenLM's module has no such
        parameter.

    Attributes
    ----------
    path : bytes
        The absolute path of the file; empty after `from_text_lm`.
    order : int
        Words in the longest n-gram. For models without n-grams, words in a window.

    Raises
    ------
    OSError
        If the file cannot be read, or is not such a model.

    Notes
    -----
    For a binary file of KenLM all numbers are those of KenLM's module, and for an ARPA
    file they are, up to its float32. These differ:

    - ``"<s>"`` in a sentence raises a ValueError. As a single word it has probability
      0, and the state after it is the beginning of a sentence. KenLM returns the number
      in the file.
    - A word of probability 0 in an ARPA file has log10 -100, which is KenLM's number
      for unknown words of a file without ``<unk>``. KenLM adds the back-off weights to
      it.
    - Equal states are equal in KenLM too, which also merges states that differ in a
      last word after which no n-gram goes on, as do those of its binary files here.
    - Models without n-grams need whole windows. ``bos=False`` and `NullContextWrite`
      raise a ValueError, and after ``"</s>"`` a sentence begins.

    Threads may share a model. A `State` that is overwritten belongs to one thread.

    Examples
    --------
    >>> from nplm import InterpolatedTrigram, TextLM, kenlm
    >>> lm = TextLM(InterpolatedTrigram(), 2).fit(["a rose is a rose"] * 9)
    >>> model = kenlm.Model.from_text_lm(lm)
    >>> "rose" in model, "tulip" in model, model.order
    (True, False, 3)
    >>> [oov for _, _, oov in model.full_scores("a tulip")]
    [False, True, False]
    >>> round(model.perplexity("a rose is a rose"), 1)
    1.3
    """

    path: bytes
    _lm: TextLM  # of `from_text_lm`

    def __init__(
        self,
        path: str | bytes | os.PathLike[Any],
        config: Config | None = None,
        *,
        verify: bool = False,
    ) -> None:
        self.path = os.path.abspath(os.fsencode(path))
        self._config, self._verify = config, verify
        name = os.fsdecode(self.path)
        method = Config().load_method if config is None else config.load_method
        try:
            with open_model(name, mmap=method < LoadMethod.READ, verify=verify) as file:
                self._set(file.scorer())
        except (ValueError, TypeError) as error:
            raise OSError(f"Cannot read model {name!r} ({error})") from error

    @classmethod
    def from_text_lm(cls, lm: TextLM) -> Self:
        """Make a model of a text model in memory.

        Parameters
        ----------
        lm : TextLM
            A fitted text model of words. It is used as it is now.

        Returns
        -------
        model : Model
        """
        # Imported here: files of n-grams are read without scikit-learn.
        from nplm.text.decoding.decoders import check_words

        check_words(lm, "Model.from_text_lm")
        model = cls.__new__(cls)
        model.path, model._config, model._verify = b"", None, False
        model._lm = lm
        model._set(lm.scorer())
        return model

    def _set(self, scorer: Scorer) -> None:
        codec, word_scorer = scorer.codec, scorer.word_scorer
        if codec.tokenizer is None:  # of a model of lists of words
            codec = Text(Splitter(BETWEEN_BLANKS), codec.vocabulary)
        ids, unknown = codec.vocabulary.known.ids_and_unknown
        blanks = getattr(codec.tokenizer, "splits_at_blanks", False)
        word_ids = codec.word_ids if hasattr(word_scorer, "text") else None
        split = splitter_of(codec.tokenizer)
        super().__init__(word_scorer, split, blanks, ids, unknown, word_ids)
        self._order = word_scorer.order

    @property
    def order(self) -> int:
        """Words in the longest n-gram."""
        return self._order

    def __reduce__(self) -> tuple[object, ...]:
        if self.path:
            make = partial(type(self), verify=self._verify)
            return make, (self.path, self._config)
        return type(self).from_text_lm, (self._lm,)

    def __repr__(self) -> str:
        return f"<Model from {os.path.basename(os.fsdecode(self.path))}>"


class LanguageModel(Model):
    """`Model`, by its former name."""
