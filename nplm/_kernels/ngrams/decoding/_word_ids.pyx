"""Ids of words: by Python's dictionary, or by their bytes.

To split a sentence, make a string of each word and ask Python's dictionary for its id
takes longer than to look its n-grams up. `WordIds` is asked with bytes in place, and
its arrays can be mapped from a file. It reads nothing outside of them, whatever is in
them.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.limits cimport INT_MAX
from libc.stdint cimport int64_t, uint32_t, uint64_t

import numpy as np


def fill_slots(
    const unsigned char[::1] text, const int64_t[::1] start, uint64_t[::1] slots
):
    """Fill a hash table of words, which is zeros, for `WordIds`.

    Returns the first word that repeats an earlier one, or -1. Repeated words have no
    slot: one that occurs many times would make each search as long.

    Parameters
    ----------
    text, start
        As of `WordIds`. Each word begins and ends in the text.
    slots : uint64, shape (n_slots,)
        More slots than words.

    Notes
    -----
    No twin: `WordIds` is tested against a dictionary.
    """
    cdef Py_ssize_t at, i, n, repeated = -1
    cdef uint64_t h
    with nogil:
        for i in range(start.shape[0] - 1):
            n = start[i + 1] - start[i] - 1
            h = hash_of(&text[start[i]], n)
            at = slot_of(slots, text, start, &text[start[i]], n, h)
            if slots[at] == 0:
                slots[at] = tag_of(h) | <uint64_t> (i + 1)
            elif repeated < 0:
                repeated = i
    return repeated


def sizes_of(texts):
    """Return the numbers of words between white space, of characters, and of bytes.

    The bytes are those of UTF-8.

    No twin: it is tested against ``str.split``.
    """
    cdef Py_ssize_t n_words = 0, n_characters = 0, n_bytes = 0, n
    cdef bint is_space, is_between
    cdef Py_UCS4 c
    cdef str text
    for item in texts:
        utf8_of(encodable(item), &n)
        text = <str> item  # or of a subclass, such as NumPy's
        n_characters += len(text)
        n_bytes += n
        is_between = True
        for c in text:
            is_space = c.isspace()
            n_words += is_between and not is_space
            is_between = is_space
    return n_words, n_characters, n_bytes


def words_at(
    list texts not None, const int64_t[::1] row not None, const int64_t[::1] i not None
):
    """Return the words with index `i` of the texts with index `row`, in their order.

    No twin: it is tested against ``BETWEEN_BLANKS.findall``.
    """
    cdef list words = []
    cdef Py_ssize_t k, n = 0, n_found = 0
    cdef const unsigned char* data = NULL
    cdef Word word
    if len(row) != len(i):
        raise ValueError(f"{len(row)} texts of {len(i)} words")
    for k in range(row.shape[0]):
        if not 0 <= row[k] < len(texts) or i[k] < 0:
            raise IndexError(f"there is no word {i[k]} in text {row[k]}")
        if k == 0 or row[k] != row[k - 1] or n_found > i[k]:
            text = encodable(texts[row[k]])
            data = utf8_of(text, &n)
            word.end, n_found = 0, 0
        while n_found <= i[k]:
            if not next_word(data, n, &word):
                raise IndexError(f"there is no word {i[k]} in text {row[k]}")
            n_found += 1
        words.append(data[word.begin:word.end].decode("utf-8", "surrogatepass"))
    return words


cdef class Ids:
    """Ids of words.

    No twin: see its subclasses.
    """

    cdef bint find_word(self, object word, int* id) except -1:
        """Return whether a word has an id, and set it.

        Raises TypeError if the word has no hash.
        """
        raise NotImplementedError

    def get(self, word, default=None):
        """Return the id of a word, or the default."""
        cdef int i
        return i if self.find_word(word, &i) else default

    def __contains__(self, word):
        cdef int i
        return self.find_word(word, &i)


cdef object unhashable(object word):
    return TypeError(
        f"tokens must be strings or hashable events, got {word!r} of type "
        f"{type(word).__name__}."
    )


cdef class DictIds(Ids):
    """Ids of words in a dictionary.

    Parameters
    ----------
    ids : dict of word to int

    Notes
    -----
    No twin: it has no loop.
    """

    def __init__(self, dict ids not None):
        self.ids = ids

    def __reduce__(self):
        return DictIds, (self.ids,)

    cdef bint find_word(self, object word, int* id) except -1:
        try:
            found = self.ids.get(word)
        except TypeError:
            raise unhashable(word) from None
        if found is None:
            return False
        # No word of a kernel's model has the highest number.
        id[0] = <int> found if 0 <= found < INT_MAX else INT_MAX
        return True


cdef Ids ids_of(object ids):
    """Return the ids of a dictionary; `Ids` and None as they are."""
    return DictIds(ids) if isinstance(ids, dict) else ids


cdef object encodable(object text):
    """Return a string, or the bytes of one with lone surrogates, which no word has."""
    cdef Py_ssize_t n
    try:
        PyUnicode_AsUTF8AndSize(text, &n)
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


cdef const unsigned char* utf8_of(object text, Py_ssize_t* n) except NULL:
    """Return what `encodable` has returned as UTF-8; it owns the memory."""
    if isinstance(text, bytes):
        n[0] = len(<bytes> text)
        return <const unsigned char*> PyBytes_AS_STRING(text)
    return <const unsigned char*> PyUnicode_AsUTF8AndSize(text, n)


cdef const unsigned char* hashed_text(
    object word, Py_ssize_t* n, uint64_t* h
) except? NULL:
    """Return a string in UTF-8, and its hash; NULL if it has lone surrogates."""
    cdef const unsigned char* data
    try:
        data = <const unsigned char*> PyUnicode_AsUTF8AndSize(word, n)
    except UnicodeEncodeError:  # which no word has
        return NULL
    h[0] = hash_of(data, n[0])
    return data


cdef class WordIds(Ids):
    """A hash table of words in UTF-8.

    Parameters
    ----------
    text : uint8, shape (n_bytes,)
        The words, with one byte between them.
    start : int64, shape (n_words + 1,)
        Where each word begins, and, last, ``n_bytes + 1``.
    slots : uint64, shape (n_slots,)
        The table that `fill_slots` fills.

    Raises
    ------
    ValueError
        If there are no words or no slots.

    Notes
    -----
    Equivalent to ``{word: i for i, word in enumerate(words)}.get``. If the arrays are
    damaged, ids are wrong, but below ``n_words``.

    No twin: it is tested against a dictionary.
    """

    def __init__(
        self, const unsigned char[::1] text not None, const int64_t[::1] start not None,
        const uint64_t[::1] slots not None,
    ):
        if start.shape[0] < 2 or slots.shape[0] == 0:
            raise ValueError("its words have no table")
        self.text, self.start, self.slots = text, start, slots

    def __len__(self):
        return self.start.shape[0] - 1

    def __reduce__(self):
        return WordIds, tuple(map(np.asarray, (self.text, self.start, self.slots)))

    cdef bint find_word(self, object word, int* id) except -1:
        cdef const unsigned char* data
        cdef Py_ssize_t n
        cdef uint64_t h
        if not isinstance(word, str):
            try:
                hash(word)
            except TypeError:
                raise unhashable(word) from None
            return False
        data = hashed_text(word, &n, &h)
        id[0] = -1 if data == NULL else self.find(data, n, h)
        return id[0] >= 0

    cdef void guess(
        self, const unsigned char* text, Py_ssize_t n, Py_ssize_t at, Batch* batch
    ) noexcept nogil:
        """Find the next words of a text of `n` bytes, from byte `at` on."""
        cdef Word* word
        cdef int i
        batch.n = 0
        while batch.n < BATCH:
            word = &batch.words[batch.n]
            word.end = at
            if not next_word(text, n, word):
                break
            expect(self, word.hashed)
            at = word.end
            batch.n += 1
        for i in range(batch.n):
            batch.guesses[i] = guess_id(self, batch.words[i].hashed)

    cdef int guessed(
        self, const unsigned char* text, const Batch* batch, int i
    ) noexcept nogil:
        """Return the id of word i of a batch, or -1."""
        cdef const Word* word = &batch.words[i]
        return self.find_guessed(
            text + word.begin, word.end - word.begin, word.hashed, batch.guesses[i]
        )

    cdef inline int find_guessed(
        self, const unsigned char* word, Py_ssize_t n, uint64_t h, int guess
    ) noexcept nogil:
        """Return the id of a word that `guess_id` was asked for, or -1."""
        if guess >= 0 and spells(self.text, self.start, guess, word, n):
            return guess
        return self.find(word, n, h)

    cdef int find(
        self, const unsigned char* word, Py_ssize_t n, uint64_t h
    ) noexcept nogil:
        """Return the id of a word with this hash, or -1."""
        cdef Py_ssize_t at = slot_of(self.slots, self.text, self.start, word, n, h)
        # An empty slot has no id either.
        return -1 if at < 0 else <int> (<int64_t> <uint32_t> self.slots[at] - 1)

    def fill_ids(
        self, list texts not None, int unknown, int[::1] ids, int64_t[::1] lengths
    ):
        """Fill in the ids of the words of texts, and the number of words of each text.

        Words are between blanks. Those that are not in the table have the id `unknown`.
        Returns the number of words.

        Equivalent to ``[get(word, unknown) for word in BETWEEN_BLANKS.findall(text)]``
        of each text.
        """
        cdef Py_ssize_t row, n = 0, first, size
        cdef const unsigned char* data
        cdef int i, id
        cdef Batch batch
        for row in range(lengths.shape[0]):
            text = encodable(texts[row])
            data = utf8_of(text, &size)
            first = n
            self.guess(data, size, 0, &batch)
            while batch.n > 0:
                if n + batch.n > ids.shape[0]:
                    raise ValueError(
                        f"there is no room for more than {ids.shape[0]} words"
                    )
                for i in range(batch.n):
                    expect_text(self, batch.guesses[i])
                for i in range(batch.n):
                    id = self.guessed(data, &batch, i)
                    ids[n + i] = unknown if id < 0 else id
                n += batch.n
                self.guess(data, size, batch.words[batch.n - 1].end, &batch)
            lengths[row] = n - first
        return n
