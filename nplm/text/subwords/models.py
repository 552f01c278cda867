"""Models of subword units: what they split, join and know, and their files."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, Protocol

from nplm.base.exceptions import optional_module
from nplm.base.progress import counter

# Libraries, by the module of their class.
LIBRARIES = ("tokenizers", "sentencepiece", "tiktoken")
UNKNOWN = "<unk>"
# Halves of surrogate pairs, as JSON may escape them. UTF-8 has none.
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# Before the file of a SentencePiece model that splits from right to left. The file
# itself never begins like this: its first byte is a tag of protobuf.
REVERSED = b"reversed\n"

# GPT-2's alphabet has a printable character for each byte. The bytes of those that are
# printable in Latin-1 stand for themselves.
THEMSELVES = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
# The others follow Latin-1, in order: a blank is U+0120, a line feed U+010A.
OTHERS = [byte for byte in range(256) if byte not in THEMSELVES]
CODES = {byte: byte for byte in THEMSELVES} | {
    byte: 256 + i for i, byte in enumerate(OTHERS)
}
# The character of each byte.
BYTES = [chr(CODES[byte]) for byte in range(256)]
BYTE_OF = {character: byte for byte, character in enumerate(BYTES)}


def bytes_to_unicode(data: bytes) -> str:
    """Return bytes as characters, one for each: those of "a é" are "aĠÃ©"."""
    return data.decode("latin-1").translate(CODES)


def unicode_to_text(tokens: Iterable[str]) -> str:
    """Return the text of tokens that are spelled; invalid UTF-8 becomes U+FFFD."""
    data = bytes(BYTE_OF[c] for c in "".join(tokens) if c in BYTE_OF)
    return data.decode("utf-8", "replace")


class UnitModel(Protocol):
    """Splits texts into units, and joins them.

    - `words`: all units; None if those of the training text are all
    - `unknown`: the unit for text that no other unit spells; None if all text is
      spelled
    """

    words: list[str] | None
    unknown: str | None

    def split(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the units of each text."""

    def join(self, tokens: Sequence[str]) -> str:
        """Return the text of units."""


class Characters(UnitModel):
    """The characters of a text (code points of Unicode)."""

    words: list[str] | None = None
    unknown: str | None = UNKNOWN

    def split(self, texts: Sequence[str]) -> list[list[str]]:
        return [list(text) for text in texts]

    def join(self, tokens: Sequence[str]) -> str:
        return "".join(tokens)


class Bytes(UnitModel):
    """The bytes of a text in UTF-8, each spelled as a character."""

    unknown: str | None = None

    def __init__(self) -> None:
        self.words: list[str] | None = BYTES

    def split(self, texts: Sequence[str]) -> list[list[str]]:
        return [
            list(bytes_to_unicode(text.encode("utf-8", "surrogatepass")))
            for text in texts
        ]

    def join(self, tokens: Sequence[str]) -> str:
        return unicode_to_text(tokens)


@contextmanager
def _errors_of(library: str | None, failure: str) -> Iterator[None]:
    """Raise a ValueError for an error of a library: each has its own, or a panic."""
    try:
        yield
    except BaseException as error:
        is_panic = type(error).__name__ == "PanicException"  # of Rust
        if not (is_panic or isinstance(error, Exception)):
            raise
        raise ValueError(f"the tokenizer of {library} {failure} ({error})") from error


class LibraryModel(UnitModel):
    """A model of a library: a copy of what its file has, which is all that is saved.

    Copies and pickles are made as the first one was: those of some libraries forget
    settings.
    """

    def __init__(self, model: Any) -> None:
        self._model = unpacked(str(library_of(model)), packed(model))

    def __reduce__(self) -> tuple[object, ...]:
        return unit_model, (self._model,)

    def split(self, texts: Sequence[str]) -> list[list[str]]:
        with _errors_of(library_of(self._model), "cannot split the text"):
            return self._split(texts)

    def join(self, tokens: Sequence[str]) -> str:
        with _errors_of(library_of(self._model), "cannot join units"):
            return self._join(list(tokens))

    def _split(self, texts: Sequence[str]) -> list[list[str]]:
        raise NotImplementedError

    def _join(self, tokens: list[str]) -> str:
        raise NotImplementedError


class HuggingFace(LibraryModel):
    """A ``tokenizers.Tokenizer``."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        model = self._model
        model.no_truncation()
        model.no_padding()
        # In a document they are text, as for the other libraries.
        model.encode_special_tokens = True
        described = json.loads(model.to_str())
        special = {
            token["content"] for token in described["added_tokens"] if token["special"]
        }
        units = described["model"]
        numbered = sorted(model.get_vocab().items(), key=itemgetter(1))
        self.unknown: str | None = units.get("unk_token")
        if units.get("unk_id") is not None:
            self.unknown = model.id_to_token(units["unk_id"])
        special.discard(self.unknown)
        self.words: list[str] | None = [w for w, _ in numbered if w not in special]
        if self.unknown is None and not set(BYTES) <= set(self.words):
            self.unknown = UNKNOWN

    def _split(self, texts: Sequence[str]) -> list[list[str]]:
        texts = _without_surrogates(texts)
        encodings = self._model.encode_batch(texts, add_special_tokens=False)
        return [encoding.tokens for encoding in encodings]

    def _join(self, tokens: list[str]) -> str:
        decoder = self._model.decoder
        return " ".join(tokens) if decoder is None else decoder.decode(tokens)


class SentencePiece(LibraryModel):
    """A ``sentencepiece.SentencePieceProcessor``."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        model = self._model
        self.unknown: str | None = model.id_to_piece(model.unk_id())
        self.words: list[str] | None = [
            model.id_to_piece(i)
            for i in range(model.get_piece_size())
            if not (model.is_control(i) or model.is_unused(i))
        ]

    def _split(self, texts: Sequence[str]) -> list[list[str]]:
        return self._model.encode(_without_surrogates(texts), out_type=str)

    def _join(self, tokens: list[str]) -> str:
        step = -1 if self._model._reverse else 1
        return self._model.decode(tokens[::step])


class Tiktoken(LibraryModel):
    """A ``tiktoken.Encoding``, whose bytes are spelled as characters."""

    unknown: str | None = None

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        ranks = self._model._mergeable_ranks
        self._spelled = {rank: bytes_to_unicode(data) for data, rank in ranks.items()}
        self.words: list[str] | None = [
            self._spelled[rank] for rank in sorted(self._spelled)
        ]

    def _split(self, texts: Sequence[str]) -> list[list[str]]:
        encoded = self._model.encode_ordinary_batch(list(texts))
        return [[self._spelled[i] for i in ids] for ids in encoded]

    def _join(self, tokens: list[str]) -> str:
        return unicode_to_text(tokens)


UNIT_MODELS = {
    "characters": Characters,
    "bytes": Bytes,
    "tokenizers": HuggingFace,
    "sentencepiece": SentencePiece,
    "tiktoken": Tiktoken,
}


def library_of(model: object) -> str | None:
    """Return the library that a model of units comes from, or None."""
    homes = {kind.__module__.partition(".")[0] for kind in type(model).__mro__}
    is_model = hasattr(model, "encode") and hasattr(model, "decode")
    return next((name for name in LIBRARIES if is_model and name in homes), None)


def unit_model(model: object) -> UnitModel:
    """Return the units of a library's model, or of "characters" or "bytes"."""
    if isinstance(model, str):
        return UNIT_MODELS[model]()
    library = str(library_of(model))
    _refuse_sampling(model)
    with _errors_of(library, "cannot be kept"):
        return UNIT_MODELS[library](model)


def _refuse_sampling(model: object) -> None:
    """Raise if a model splits one text differently each time."""
    inner = getattr(getattr(model, "_tokenizer", model), "model", None)
    for owner, name, unset in (
        (inner, "dropout", (None, 0.0)),
        (inner, "alpha", (None,)),
        (inner, "nbest_size", (None,)),
        (model, "_enable_sampling", (False,)),
    ):
        value = getattr(owner, name, unset[0])
        if value not in unset:
            raise ValueError(
                f"the tokenizer samples how it splits a text ({name.strip('_')}="
                f"{value!r}), so two scores of a text would differ: set it to "
                f"{unset[0]}."
            )


def trained(kind: str, texts: Iterable[str], n_words: int) -> Any:
    """Train a ``tokenizers.Tokenizer`` of `n_words` units, the 256 bytes among them."""
    library = optional_module("tokenizers", f"Subwords({kind!r})")
    models, trainers = library.models, library.trainers
    options = {
        "vocab_size": n_words,
        "initial_alphabet": BYTES,
        "show_progress": False,
    }
    if kind == "bpe":
        model, trainer = models.BPE(), trainers.BpeTrainer(**options)
    else:
        model, trainer = models.Unigram(), trainers.UnigramTrainer(**options)
    tokenizer = library.Tokenizer(model)
    tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = library.decoders.ByteLevel()
    # The library reads the texts, and then learns, in another thread, which has no bar.
    count = counter()

    def valid_texts() -> Iterator[str]:
        yield from map(_without_surrogate, texts)
        count("learning units", 0, 0)

    tokenizer.train_from_iterator(valid_texts(), trainer)
    return tokenizer


def _without_surrogate(text: str) -> str:
    """Return a text with U+FFFD for each lone surrogate, which libraries refuse."""
    return LONE_SURROGATE.sub("\ufffd", text)


def _without_surrogates(texts: Iterable[str]) -> list[str]:
    return [_without_surrogate(text) for text in texts]


# -- files --------------------------------------------------------------------------


def packed(model: Any) -> bytes:
    """Return a library's model in the format of its library."""
    library = library_of(model)
    if library == "tokenizers":
        return str(model.to_str()).encode()
    if library == "sentencepiece":
        return REVERSED * bool(model._reverse) + model.serialized_model_proto()
    ranks = model._mergeable_ranks
    parts = {
        "name": model.name,
        "pat_str": model._pat_str,
        "special_tokens": model._special_tokens,
        "mergeable_ranks": [
            [base64.b64encode(data).decode(), rank] for data, rank in ranks.items()
        ],
    }
    return json.dumps(parts).encode()


def unpacked(name: str, data: bytes) -> Any:
    """Return the model that `packed` wrote, or raise ValueError if it is damaged."""
    if name not in LIBRARIES:
        raise ValueError(f"{name!r:.80} is not a library of subwords")
    library = optional_module(name, "the model's tokenizer")
    with _errors_of(name, "is damaged"):
        if name == "sentencepiece":
            proto = data.removeprefix(REVERSED)
            return library.SentencePieceProcessor(
                model_proto=proto, reverse=len(proto) < len(data)
            )
        parts = json.loads(data)
        if name == "tokenizers":
            _check_ids(parts["model"]["vocab"], len(data))
            return library.Tokenizer.from_str(data.decode())
        pairs = parts["mergeable_ranks"]
        ranks = {base64.b64decode(text): rank for text, rank in pairs}
        if not len(set(ranks.values())) == len(ranks) == len(pairs):
            raise ValueError("two of its tokens are equal")
        return library.Encoding(**parts | {"mergeable_ranks": ranks})


def _check_ids(units: object, n_bytes: int) -> None:
    """Raise if an id is too large for the file: the library goes through all ids."""
    largest = max(units.values(), default=0) if isinstance(units, dict) else 0
    if largest > n_bytes:
        raise ValueError(f"a unit has the id {largest}, in a file of {n_bytes} bytes")
