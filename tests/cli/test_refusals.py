"""Mistakes of every command: a sentence in the words of its options, and no output."""

import bz2
import gzip
import os
import re
import shlex

import pytest

import nplm
from nplm.cli import main

# Of each beginning of a command: more arguments, the exit code, and what is said.
TRAIN = [
    ("--order 300000", 2, "300000 is not in the range 2<=x<=32"),
    ("--jobs 0", 2, "'0' must be 1 or more, or -1 for all cores"),
    ("--model energy --direct", 2, "--model energy has no --direct, an option of"),
    ("--hidden 50", 2, "has no --hidden, an option of network, energy, shortlist, mix"),
    ("--shortlist 9 --model network", 2, "no --shortlist, an option of shortlist:"),
    ("--model trigram --classes 9", 2, "--classes, an option of classes"),
    ("--model shortlist --samples 9", 2, "no --samples, an option of network, energy,"),
    ("--model shortlist --loss nce", 2, "trains on all words of its list: leave --los"),
    ("--model mixture --loss exact --samples 9", 2, "--loss exact has none: leave"),
    ("--model network --hidden 0", 1, "--hidden 0 without direct connections leaves"),
    ("--hidden 8,x", 2, "'8,x' must be a whole number from 0 on, or the num"),
    ("--hidden 8,0", 2, "'8,0' must be a whole number from 0 on, or the num"),
    ("--hidden -1", 2, "'-1' must be a whole number from 0 on, or the number"),
    ("--model energy --hidden 8,9", 1, "--hidden must be"),
    ("--model network --hidden 4000000000", 1, "out of memory: Unable to allocate"),
    (
        "--model network --learning-rate 5000 --alpha 0 -o @diverges",
        1,
        "nats per token); lower --learning-rate, now 5000, or --batch-size, now 256.",
    ),
    (
        "--model network --learning-rate 5000 --alpha 1",
        1,
        "--learning-rate * --alpha = 5000 is the share of each weight that weight",
    ),
    ("--model trigram --bits 8", 2, "no --bits, an option of kneser-ney"),
    ("--model mixture --memory 1G", 2, "mixture has no --memory, an option of kneser"),
    ("--keep-optimizer", 2, "--model kneser-ney has no --keep-optimizer"),
    ("--model trigram --no-marks", 2, "--no-marks"),
    ("--tokens bytes --no-marks", 2, "--no-marks"),
    ("--counts --no-marks", 2, "--no-marks"),
    ("--model trigram --counts", 2, "has no --counts"),
    ("--bits 13", 2, "13 is not in the range 3<=x<=12"),
    ("--order 17 --bits 8", 1, "--bits 8 quantizes orders 2 to 16, but the model's"),
    ("--min-counts 1,x", 2, "'1,x' must be whole numbers from 1 on, one per"),
    ("--min-counts 1,0", 2, "'1,0' must be whole numbers from 1 on, one per"),
    (
        "--min-counts 1,3,2 --min-counts-of text",
        1,
        "--min-counts 1,3,2 decreases, but with --min-counts-of text the suff",
    ),
    ("--memory much", 2, "'much' must be a number of bytes"),
    ("--test @blank", 1, "there is no text to test on in"),
    ("--valid @blank", 1, "there is no text to validate on in"),
    ("--vocabulary @blank", 1, "blank has no words."),
    ("--vocabulary @test --min-count 2", 2, "leave one of both out"),
    ("--vocabulary @lexicon", 1, "lexicon, line 1: 'the\\tDH AH' is more than a word"),
    ("--counts", 1, "train is plain text, not counts"),
    ("--tokens bpe --min-count 2", 2, "bpe has a vocabulary of its own: leave"),
    ("--tokens bytes --vocabulary @test", 2, "bytes has a vocabulary of its own"),
    ("--tokens bytes --max-words 300", 2, "leave --max-words out"),
    ("--tokens characters --memory 1M", 2, "--memory is for models that are estimated"),
    ("--tokens unigram --max-words 256", 2, "--max-words 256 is too small: --tokens"),
    ("-o @no.arpa.gz --model trigram", 2, "or train --model kneser-ney, whose"),
    ("-o @no.arpa.gz --tokens bytes", 2, "or train --tokens words or blanks with"),
    ("-o @no.arpa.gz --bits 8", 2, "--bits is for mapped n-grams"),
    ("-o @no.arpa.gz --test @test", 2, "leave --valid and --test out"),
    ("-o @no.arpa.bz2", 2, "files are written with gzip or xz"),
    ("-o @link", 2, "there is no folder "),
    ("-o @folder", 2, "is a folder; name a file in it"),
    ("-o /dev/null", 2, "it is a device or a pipe"),
    ("--minutes 1 --model network", 2, "leave --model out"),
    ("--minutes 1 --hidden 9", 2, "leave --hidden out"),
    ("--minutes 1 --order 3", 2, "--minutes chooses the models"),
    ("--adapt", 2, "--adapt is for --minutes"),
    ("--text running", 2, "--text is for --minutes"),
    ("--minutes 0", 2, "0.0 is not in the range"),
    ("--minutes 1 --set hidden", 2, "NAME=VALUE"),
    ("--minutes nan", 2, "NaN is not a number"),
    ("--minutes inf", 1, "--minutes must be"),
    (
        "--minutes 1 --set n_units=3",
        2,
        "--set has 'n_units': it may fix members, ngram",
    ),
    ("--minutes 1 --set n_hidden=-1", 2, "--set: The 'n_hidden' parameter"),
    ("--minutes 1 --set output=3", 2, "--set: The 'output' parameter of NeuralLM must"),
    ("--minutes 1 --set spelling=3", 2, "spelling must be True or False, got 3"),
    ("--minutes 1 --set ngram_order=0", 2, "ngram_order must be an int above 0"),
    ("--minutes 1 --members a", 2, "--members must be some of ngrams"),
    ("--minutes 1e-5", 1, "is too short"),
    ("--minutes 1 --memory 1M", 1, " MB of text takes about 0.2 GB"),
    ("--minutes 1 -o @no.arpa", 2, "OUTPUT is a model of nplm"),
]
OTHERS = {
    "train -o @no": [
        ("@zip", 1, "zip is compressed by zip, but"),
        ("@latin", 1, "latin, line 2: not UTF-8"),
        ("@wide", 1, "wide, line 1: it has a NUL"),
        ("", 1, "the texts have no word: there is nothing"),
        ("@short --minutes 1 --members network", 1, "a network needs 2,000 tokens, or"),
        ("@counts.gz --counts --tokens blanks", 2, "--tokens is for texts"),
        ("@marks --tokens blanks", 1, "line 1: it has '<s>' inside"),
        ("@marks --tokens blanks --model trigram", 1, "line 1: it has '<s>' inside"),
    ],
    "train": [("", 2, "Missing option"), ("nonsense", 2, "does not exist")],
    "nonsense": [("", 2, "No such command")],
    "score @kn": [
        ("@test --json --per-token", 2, "leave --per-token out"),
        ("@test --least-token --per-token", 2, "leave --per-token out"),
        ("--follow -", 2, "give the name of one TEXT"),
        ("--follow @test @train", 2, "give the name of one TEXT"),
        ("--follow @test --jobs 2", 2, "give the name of one TEXT"),
        ("--follow @pipe", 2, "which is not a pipe"),
        ("--follow @log.gz", 1, "leave --follow out"),
        ("@latin", 1, "latin, line 2: not UTF-8"),
        ("@cut", 1, "cut cannot be decompressed"),
        ("@bz2", 1, "bz2 cannot be decompressed"),
        ("@nowhere", 2, "nowhere' does not exist."),
        ("@folder", 2, "is a directory."),
    ],
    "score": [
        ("@bz2 @test", 1, "bz2 cannot be decompressed"),
        ("@train", 1, "train, after line 500: no line"),
        ("@words", 1, "words has a Vocabulary, not a TextLM: in Python"),
        ("@absent", 2, "does not exist"),
    ],
    "query": [
        ("", 2, "Missing argument"),
        ("@kn --columns srilm --summary", 2, "--columns srilm shows each word"),
        ("@kn --columns srilm --each line", 2, "--columns srilm shows each word"),
        ("@kn @blank", 1, "there is no line of text to query"),
        ("@words.vec @test", 1, "has word vectors, not a model"),
    ],
    "filter @kn @test": [
        ("", 2, "give one of --keep"),
        ("--keep 0.5 --by-quantiles", 2, "give one of --keep"),
        ("--keep 0", 2, "0<x<=1"),
        ("--by-quantiles --rejects @no", 2, "leave --rejects and"),
        ("--by-perplexities 3 4 --min-perplexity 2", 2, "keep all lines"),
        ("--by-perplexities 3 4 --by-quantiles", 2, "give one of --keep"),
        ("--by-perplexities 4 3", 2, "--by-perplexities 4 3: LOW is not below HIGH"),
        ("--by-perplexities 3", 2, "requires 2 arguments"),
        ("--min-perplexity 5 --max-perplexity 4", 2, "5 is not below"),
        ("--min-perplexity inf", 2, "'--min-perplexity': inf is not in the range"),
        ("--min-perplexity nan", 2, "'--min-perplexity': NaN is not a number"),
    ],
    "card @kn --text": [
        ("@test --text @folder/test", 2, "two texts have the same name"),
        ("@blank", 1, "there is no line of text in blank"),
    ],
    "generate @kn": [
        ("--min-words 9 --max-words 8", 1, "--min-words 9 is more than --max-words 8"),
    ],
    "neighbors": [
        ("@kn cat", 1, "BackoffLM has no features of words: give a MODEL trained with"),
        ("@network zebra", 1, "'zebra' is not in the vocabulary of 11 words"),
    ],
    "count -o @no": [
        ("", 1, "the texts have no word"),
        ("@train -o @no.bz2", 2, "gzip or xz"),
        ("@marks", 1, "<s>"),
        ("--merge", 2, "give their names"),
        ("--merge @counts.gz --blank-lines sentences", 2, "for texts"),
        ("--merge @counts.gz --weights half", 2, "'half'"),
        ("--merge @counts.gz --weights 1,2.50", 1, "--weights 1,2.5 must be numbers"),
        ("@counts.gz --weights 1", 2, "--merge too"),
        ("--merge @counts.gz --order 3", 1, "lower --order"),
        ("--merge @huge --order 1", 1, "9223372036854775807' has a count that overf"),
        ("--merge @huge --order 1 --weights 2", 1, "has a count that overflows"),
    ],
    "mix -o @no.arpa @kn": [
        ("@kn", 2, "give --valid"),
        ("@kn --valid @test --weights 0.5,0.5", 2, "give --valid"),
        ("@kn --weights half", 2, "'half'"),
        ("@kn --weights 0.25,-3,1e-7", 1, "--weights 0.25,-3,1e-07 must be numbers, 0"),
        ("--weights 1", 1, "two models or more"),
        ("@network --weights 0.5,0.5", 1, "has no back-off n-grams (NeuralLM)"),
        ("@six --weights 0.5,0.5", 1, "which is not quantized (--bits)"),
        ("@kn --valid @empty", 1, "--valid has 0 documents and no token"),
    ],
    "prune @kn @no.arpa --limit-vocab": [
        ("@blank", 1, "blank has no words"),
        ("@lexicon", 1, "--limit-vocab: "),
        ("@others", 1, "others: the model has none of the words"),
    ],
    "prune @network @no.arpa": [("", 1, "has no back-off n-grams (NeuralLM)")],
    "convert": [
        ("@kn @no --float16", 1, "--float16 is of the weights of a network, and this"),
        ("@network @no.vec --float16", 2, "--float16 is for files of nplm.save"),
        (
            "@network @no.vec --keep-optimizer",
            2,
            "--keep-optimizer is for files of npl",
        ),
        ("@network @no.arpa", 1, "give a MODEL trained with --model kneser-ney"),
        ("@kn @no.arpa.bz2", 2, "gzip or xz"),
        ("@kn @no.arpa --symbols @no.symbols", 2, "--symbols and --backoff-symbol are"),
        ("@kn @no --to fst --backoff-symbol ''", 1, "--backoff-symbol : a label must"),
        ("@kn @no --to vectors", 1, "BackoffLM has no features of words"),
        (
            "@kn @no --boost @phrase",
            1,
            "phrase, line 2: 'a b' is not a word, or a word",
        ),
        ("@kn @no --boost @numbers", 1, "numbers, line 1: 'a 1 2' is not a word, or"),
        ("@kn @no --boost @nan", 1, "nan"),
        ("@kn @no --boost @blank", 1, "blank has no words"),
        (
            "@network @no --boost @others --float16",
            2,
            "--bits and --boost are for n-gr",
        ),
        ("@words.vec @no.vec --bits 8", 2, "has word vectors: of the options, only"),
        ("@words.vec @no.vec --float16", 2, "has word vectors: of the options, only"),
        ("@words.vec @no.vec --memory 1G", 2, "has word vectors: of the options, only"),
        ("@words.vec @no.vec --boost @others", 1, "has word vectors, not a model"),
        ("@words.vec @no.arpa", 1, "has word vectors: they cannot be written as arpa"),
    ],
    "compare --corpus @train": [
        ("--json @absent/no.json", 2, "there is no folder"),
        ("--json @folder", 2, "is a folder"),
        ("--json -", 2, "nothing is written to standard output; give a name"),
        ("--output -", 2, "nothing is written to standard output; give a name"),
        ("--output @train", 2, "cannot be made"),
        ("--output @train/inner", 2, "cannot be made"),
        ("--corpus python-docs --min-count 2", 2, "--min-count is for --corpus PATH"),
        ("--corpus brwon", 1, "brwon: there is no such file or folder, and the named"),
        ("--corpus @short", 1, "too small for its splits"),
        ("--jobs 0", 2, "'0' must be 1 or more, or -1"),
        ("--minutes 0", 2, "'--minutes'"),
        ("--set n_hidden", 2, "must be NAME=VALUE"),
        ("--set n_hiden=3", 2, "--set has 'n_hiden': it may fix members, "),
        ("--set n_hidden=-1", 2, "--set: "),
        ("--hiddn 8", 2, "No such option"),
    ],
    "reproduce": [
        ("table3", 2, "table3"),
        ("table1 --rows MLP11", 1, "'MLP11' is not a row of table1"),
        ("table1 --rows ' ,'", 2, "--rows names no row: leave it out for all"),
        ("table1 --text @train", 2, "--text is for table2: table1 is of Brown."),
        ("table1 --jobs 0", 2, "'0' must be 1 or more, or -1"),
        ("table1 --folder @train/x", 2, "cannot be made"),
        ("table1 --jobs many", 2, "many"),
    ],
}
CASES = [
    (f"{begin} {more}", code, message)
    for begin, rows in {"train @train -o @no": TRAIN, **OTHERS}.items()
    for more, code, message in rows
]


@pytest.fixture(scope="module")
def files(made, run):
    files = {
        "blank": b"\n\n", "empty": b"", "lexicon": b"the\tDH AH\ncat\tK AE T\n",
        "others": b"lion\n", "short": b"too short", "phrase": b"dog\na b\n",
        "marks": b"a <s> b\n", "numbers": b"a 1 2\n", "nan": b"zebra nan\n",
        "words.vec": b"1 2\na 0.5 1\n", "huge": b"</s>\t1\na\t9223372036854775807\n",
        "latin": b"good\ncaf\xe9\n", "wide": "some\ntext\n".encode("utf-16"),
        "cut": gzip.compress(b"some text\n" * 999)[:-30],
        "bz2": bz2.compress(b"some text\n")[:-9], "zip": b"PK\x03\x04 and more",
        "log.gz": gzip.compress(b"the cat\n"), "folder/test": b"the cat\n",
    }  # fmt: skip
    (made / "folder").mkdir()
    for name, content in files.items():
        (made / name).write_bytes(content)
    nplm.save(nplm.load(made / "kn").vocabulary_, made / "words")
    os.mkfifo(made / "pipe")
    (made / "link").symlink_to(made / "absent" / "model")
    run("count", "@train", "-o", "@counts.gz", "--order", "2")
    run("train", "@train", "-o", "@six", "--bits", "6")
    return made


@pytest.mark.parametrize(("command", "code", "message"), CASES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_mistake_is_a_sentence(files, run, command, code, message):
    result = run(*shlex.split(command), code=code, input="\n")
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert "Traceback" not in result.output
    assert "reading the text to train" not in result.stderr or code == 1
    assert not [path for path in files.iterdir() if path.name.split(".")[0] == "no"]


def test_texts_that_are_read_twice_are_no_pipes(files, run):
    for command in (
        "train @train --valid @pipe -o @no", "train @train --test @pipe -o @no",
        "mix @kn @kn --valid @pipe -o @no",
    ):  # fmt: skip
        said = " ".join(run(*shlex.split(command), code=2).stderr.split())
        assert re.search("pipe is a pipe( or a device: write)?", said)
        assert not (files / "no").exists()


def test_help_of_every_command(run):
    names = main.list_commands(None)
    assert {"score", "serve", "show-versions"} < set(names)
    for name in names:
        said = run(name, "--help").stdout
        assert "Usage: " in said
        # By default it looks for a terminal.
        assert "default:no-progress" not in "".join(said.split())
    commands = run("--help").stdout.split("Commands:")[1]
    assert "..." not in commands  # where a sentence is cut


def test_a_file_that_may_not_be_read_is_named(made, run, monkeypatch):
    def refused(path, **options):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("nplm.cli._models.open_model", refused)
    result = run("score", "@kn", code=1)
    assert result.stderr == f"Error: {made / 'kn'}: Permission denied.\n"
