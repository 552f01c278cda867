"""word_tree: a binary tree of words, from their classes and a text."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nplm.base.array_types import Counts, Floats, Ids, Index
from nplm.base.checks import check_classes, check_ids, trusted_ids
from nplm.base.word_trees import huffman


def word_tree(ids: ArrayLike, classes: object, *, n_words: int | None = None) -> Ids:
    """Make a binary tree of words from classes, for ``NeuralLM(output="tree")``.

    The top of the tree is a hierarchy of classes: the two whose merger loses the least
    mutual information of neighbouring classes are merged, repeatedly (Brown et al.
    1992), so that nodes near the root separate words with different neighbours. Below
    each class is the Huffman tree of its words.

    Parameters
    ----------
    ids : array-like of int, shape (n_tokens,)
        Word ids in text order, at least two.
    classes : WordClasses or array-like of int, shape (n_words,)
        The class of each word, or a fitted `WordClasses`. The time grows with the cube
        of the number of classes: 300 take some seconds.
    n_words : int, optional
        Size of the vocabulary; by default the number of words with a class.

    Returns
    -------
    tree : ndarray of int32, shape (n_words - 1, 2)
        One row per inner node, with its two children: a word, or `n_words` plus the row
        of another node, as in scikit-learn's ``children_``. The root comes first.

    Raises
    ------
    NotFittedError
        If `classes` is a `WordClasses` that is not fitted.
    ValueError
        If ids are out of range, a word has no class, or a class has no word.

    See Also
    --------
    WordClasses : Finds classes.

    References
    ----------
    P. F. Brown, V. J. Della Pietra, P. V. deSouza, J. C. Lai and R. L. Mercer
    (1992). Class-based n-gram models of natural language. Computational
    Linguistics 18.

    Examples
    --------
    Words 0 and 1 are in one class; 2 is the most frequent word of the other:

    >>> from nplm import word_tree
    >>> word_tree([0, 2, 1, 3, 0, 2, 1, 2, 0, 4], [0, 0, 1, 1, 1]).tolist()
    [[6, 7], [1, 0], [2, 8], [3, 4]]
    """
    labels = check_classes(classes, "classes", n_words)
    n = len(labels)
    ids = trusted_ids(check_ids(ids, "ids", ndim=1, n_words=n), n)
    C = int(labels.max()) + 1
    pairs = np.bincount(
        labels[ids[:-1]].astype(np.int64) * C + labels[ids[1:]], minlength=C * C
    )
    tree = np.empty((n - 1, 2), np.int32)
    weights = np.bincount(ids, minlength=n) + 1
    # The nodes of classes, then of mergers, which are the first rows.
    node, row = np.empty(2 * C - 1, np.int32), C - 1
    for label in range(C):
        words = np.flatnonzero(labels == label)
        below = huffman(weights[words])
        k = len(words)
        tree[row : row + k - 1] = np.where(
            below < k, words[np.minimum(below, k - 1)], n + row + below - k
        )
        node[label] = words[0] if k == 1 else n + row
        row += k - 1
    node[C:] = n + np.arange(C - 1)[::-1]
    tree[: C - 1] = node[mergers(pairs.reshape(C, C))][::-1]
    return tree


def mergers(pairs: Counts) -> Index:
    """Return the two classes of each merger, shape (n_classes - 1, 2).

    Merger t makes the class n_classes + t. The log-likelihood of the classes is the sum
    of f(n_gh) over pairs minus those of the margins, with f(n) = n log n. Each merger
    loses the least log-likelihood. The sums over merged rows and columns are updated,
    so the time of a merger is quadratic in the number of classes.
    """
    n = pairs.astype(np.float64)
    names = list(range(len(n)))
    merged_pairs: list[tuple[int, int]] = []
    # rows[g, h]: f summed over row g + row h; columns likewise.
    rows = np.stack([_f(row + n).sum(axis=1) for row in n])
    columns = np.stack([_f(column + n.T).sum(axis=1) for column in n.T])
    while len(n) > 1:
        gain = _gains(n, rows, columns)
        np.fill_diagonal(gain, -np.inf)
        i, j = sorted(divmod(int(gain.argmax()), len(n)))
        merged_pairs.append((names[i], names[j]))
        names[i] = len(pairs) + len(merged_pairs) - 1
        for sums, by in ((rows, n.T), (columns, n)):
            one, other = by[i], by[j]
            both = one + other
            sums += _f(np.add.outer(both, both))
            sums -= _f(np.add.outer(one, one)) + _f(np.add.outer(other, other))
        n[i] += n[j]
        n[:, i] += n[:, j]
        kept = np.arange(len(n)) != j
        n, rows, columns = (a[np.ix_(kept, kept)] for a in (n, rows, columns))
        del names[j]
        rows[i] = rows[:, i] = _f(n[i] + n).sum(axis=1)
        columns[i] = columns[:, i] = _f(n[:, i] + n.T).sum(axis=1)
    return np.array(merged_pairs, np.intp).reshape(-1, 2)


def _f(n: Floats) -> Floats:
    return n * np.log(np.maximum(n, 1.0))


def _gains(n: Floats, rows: Floats, columns: Floats) -> Floats:
    """Return the gain in log-likelihood of each merger; a loss is negative."""
    within, single = np.diag(n), _f(n)
    # At the crossing of the two rows and the two columns, four pairs become one.
    down, across = _f(within[:, None] + n.T), _f(within[:, None] + n)
    merged = rows + columns - down - down.T - across - across.T
    merged += _f(within[:, None] + within + n + n.T)
    alone = single.sum(axis=0) + single.sum(axis=1)
    before = np.add.outer(alone, alone) - single - single.T
    before -= np.add.outer(np.diag(single), np.diag(single))
    margins = np.zeros_like(n)
    for total in (n.sum(axis=0), n.sum(axis=1)):
        margins += _f(np.add.outer(total, total)) - np.add.outer(_f(total), _f(total))
    return np.asarray(merged - before - margins)
