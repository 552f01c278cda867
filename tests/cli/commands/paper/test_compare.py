"""``nplm compare``: its options, its output, and how it ends."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import nplm
from nplm import NCE, SGD, Adam, Exact, Importance
from nplm.cli import main
from nplm.cli._bars import Stages
from nplm.cli._jobs import mpi_job
from nplm.cli.commands.paper import compare as command
from nplm.cli.commands.paper import corpora
from nplm.experiments import QUICK, comparison

MODELS = [
    "trigram", "Kneser-Ney", "classes", "network", "network + trigram",
    "network + Kneser-Ney", "all four",
]  # fmt: skip
SMALL = ["--epochs", "2", "--hidden", "8", "--embedding", "4", "--min-count", "1"]
SMALL += ["--learning-rate", "0.02"]


def file_of(name):
    return name.replace(" ", "")


@pytest.fixture
def text(tmp_path):
    """A file of 3,000 random sentences of a small grammar."""
    random = np.random.default_rng(0)
    parts = [["the", "a"], ["cat", "dog"], ["sees", "bites"], ["them", "everything"]]
    path = tmp_path / "text.txt"
    lines = [" ".join(random.choice(part) for part in parts) for _ in range(3000)]
    path.write_text(" .\n".join(lines) + " .\n", encoding="utf-8")
    return path


@pytest.fixture
def run(text):
    def run(*arguments):
        arguments = ["compare", "--corpus", str(text), *SMALL, *map(str, arguments)]
        return CliRunner().invoke(main, arguments)

    return run


@pytest.mark.parametrize("options", [[], ["--lines"]])
def test_compare_reports_and_saves(run, tmp_path, options):
    json_path, folder = tmp_path / "result.json", tmp_path / "new" / "models"
    result = run("--json", json_path, "--output", folder, *options)
    assert result.exit_code == 0, result.output
    for heading in (
        "Perplexity",
        "On the test part the network alone is",
        f"averages of the last {QUICK['n_distant']} words and the spelling of words",
        "Out of vocabulary",
        "Next words",
        "Nearest words",
    ):
        assert heading in result.stdout

    report = json.loads(json_path.read_text(encoding="utf-8"))
    assert [row["model"] for row in report["rows"]] == MODELS
    for row in report["rows"]:
        assert 1 < row["test"] < 5, row
        assert row["parameters"] > 0
        assert row["model"] in result.stdout
        assert f"{row['test']:.1f}" in result.stdout
        model = nplm.load(folder / file_of(row["model"]))
        assert model.n_words_ == report["n_words"]
    assert report["spelling"]
    for example in report["next_words"]:
        assert len(example["context"]) == 4  # of order 5
    words = (folder / "words.txt").read_text(encoding="utf-8").splitlines()
    assert words == nplm.load(folder / "vocabulary").words_.tolist()
    assert len(words) == report["n_words"]


@pytest.mark.parametrize(
    ("jobs", "cores"), [("1", "one core"), ("2", "2 cores"), ("-1", None)]
)
def test_the_time_is_told_first(run, jobs, cores):
    result = run("--jobs", jobs)
    told = [
        line for line in result.stderr.splitlines() if "The models take about" in line
    ]
    assert len(told) == 1
    assert cores is None or f"10 seconds on {cores} of this machine." in told[0]
    assert result.stderr.index(told[0]) < result.stderr.index("trigram: training")


def test_a_network_as_in_the_paper(run, tmp_path):
    options = ["--distant", "0", "--no-tied", "--no-spelling", "--jobs", "1"]
    result = run(*options, "--output", tmp_path)
    assert result.exit_code == 0, result.output
    assert "also sees" not in result.stdout
    network = nplm.load(tmp_path / "network")
    assert network.n_distant == 0
    assert not network.output.tied
    assert network.G_ is None
    assert network.n_features_in_ == 4


def test_tables_are_as_wide_as_they_are(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = run().stdout.splitlines()
    [heading] = [line for line in lines if line.split()[:1] == ["model"]]
    assert heading.split()[-2:] == ["parameters", "seconds"]
    first = lines.index(heading) + 2
    rows = lines[first : first + len(MODELS)]
    assert all(row.startswith(name) for row, name in zip(rows, MODELS))
    assert all(row.split()[-1].replace(".", "").isdigit() for row in rows)


def test_a_vocabulary_of_unknown_words_is_told(run):
    result = run("--min-count", "100000")
    assert "Warning: 100% of the words are <unk>" in " ".join(result.stderr.split())


@pytest.mark.slow
def test_options_reach_the_network(run, tmp_path):
    options = "--order 3 --hidden 0 --direct --learning-rate 0.01 --decay 0 --alpha 0"
    options += " --loss exact --solver sgd --schedule invscaling --dropout 0.1"
    more = "--patience 1 --batch-size 16 --precision float64 --seed 7 --ngram-order 2"
    result = run(*options.split(), *more.split(), "--output", tmp_path)
    assert result.exit_code == 0, result.output
    network = nplm.load(tmp_path / "network")
    expected = {
        "order": 3,
        "n_hidden": 0,
        "embedding_dim": 4,
        "output__direct": True,
        "learning_rate_init": 0.01,
        "solver__learning_rate_decay": 0.0,
        "solver__learning_rate": "invscaling",
        "dropout": 0.1,
        "alpha": 0.0,
        "max_iter": 2,
        "n_iter_no_change": 1,
        "batch_size": 16,
        "precision": "float64",
        "random_state": 7,
    }
    found = network.get_params()
    assert expected.items() <= found.items()
    assert isinstance(network.loss_, Exact)
    assert isinstance(network.solver, SGD)
    assert nplm.load(tmp_path / "Kneser-Ney").order_ == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "loss"),
    [
        ("--samples 9", Importance(9)),
        ("--loss auto --samples 9", Importance(9)),
        ("--loss nce", NCE(QUICK["loss__n_noise"])),
        ("--loss nce --samples 9", NCE(9)),
        ("--loss auto", Exact()),  # of few words
    ],
)
def test_noise_samples_are_those_of_the_loss(run, tmp_path, options, loss):
    result = run(*options.split(), "--output", tmp_path)
    assert result.exit_code == 0, result.output
    found = nplm.load(tmp_path / "network").loss_
    assert type(found) is type(loss)
    assert found.get_params() == loss.get_params()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--json", "{tmp}/absent/x.json"], "cannot be written to"),
        (["--json", "{tmp}"], "is a folder"),
        (["--json", "-"], "nothing is written to standard output; give a name"),
        (["--output", "-"], "nothing is written to standard output; give a name"),
        (["--output", "{tmp}/text.txt"], "cannot be made"),
        (["--output", "{tmp}/text.txt/inner"], "cannot be made"),
        (["--corpus", "python-docs"], "--min-count is for --corpus PATH"),
        (["--hidden", "0"], "set --direct or --hidden above 0"),
        (["--loss", "exact", "--samples", "9"], "--loss exact has none: leave --sam"),
        (["--learning-rate", "0"], "--learning-rate"),
        (["--jobs", "0"], "0 threads do nothing"),
        (["--order", "300000"], "2<=x<=32"),
    ],
)
def test_wrong_options_are_refused_before_training(
    run, tmp_path, monkeypatch, options, message
):
    monkeypatch.setattr(command, "compare", None)
    result = run(*(option.format(tmp=tmp_path) for option in options))
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.output.replace("│", " ").split())


def test_an_absent_corpus_is_named(run):
    result = run("--corpus", "brwon")
    assert result.exit_code == 1
    assert "brwon: there is no such file or folder" in result.output
    assert "python-docs, brown, ptb" in result.output


def test_a_text_too_short_for_its_parts(run, tmp_path):
    path = tmp_path / "short.txt"
    path.write_text("too short", encoding="utf-8")
    result = run("--corpus", path)
    assert result.exit_code == 1
    assert "too small for its splits" in result.output


def test_divergence_is_told_in_words(run, tmp_path):
    result = run(
        "--learning-rate", 50, "--alpha", 0, "--json", tmp_path / "result.json"
    )
    assert result.exit_code == 1
    assert "diverged" in result.output
    assert "Traceback" not in result.output
    report = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert [row["model"] for row in report["rows"]] == MODELS[:3]
    assert "diverged" in report["failure"]


@pytest.mark.parametrize(
    ("stage", "n_rows"),
    [
        ("Kneser-Ney: training", 1),
        ("classes: training", 2),
        ("network: training", 4),
        ("network + trigram", 4),
    ],
)
def test_an_interrupt_keeps_what_was_trained(run, tmp_path, monkeypatch, stage, n_rows):
    def interrupt(bars, now, done, total, note):
        if now.startswith(stage) and (note or stage != "network: training"):
            raise KeyboardInterrupt

    if stage == "network + trigram":
        monkeypatch.setattr(
            comparison, "mixed", lambda *_: interrupt(0, stage, 1, 1, "")
        )
    monkeypatch.setattr(Stages, "show", interrupt)
    result = run("--output", tmp_path / "models", "--json", tmp_path / "result.json")
    assert result.exit_code == 130, result.output
    assert "Interrupted" in result.output
    trained = "network: training" in stage
    assert ("network (interrupted)" in result.stdout) == trained
    report = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert [row["model"] for row in report["rows"]] == MODELS[:n_rows]
    assert [row["interrupted"] for row in report["rows"]].count(True) == trained
    files = {path.name for path in (tmp_path / "models").iterdir()}
    assert files == {*MODELS[:n_rows], "vocabulary", "words.txt"}


def test_an_interrupt_while_the_corpus_loads(run, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(corpora, "load_text", interrupt)
    assert run().exit_code == 130


def test_the_network_is_the_quick_one(run, tmp_path):
    assert run("--output", tmp_path).exit_code == 0
    found = nplm.load(tmp_path / "network").get_params()
    assert isinstance(found["loss"], Importance)
    assert isinstance(found["solver"], Adam)
    assert (QUICK["loss"], QUICK["solver"]) == ("importance", "adam")
    given = {"max_iter", "n_hidden", "embedding_dim", "learning_rate_init"}  # by SMALL
    left = QUICK.keys() - given - {"loss", "solver"}
    assert {name: found[name] for name in left} == {
        name: value for name, value in QUICK.items() if name in left
    }


def test_help_shows_the_defaults():
    result = CliRunner().invoke(main, ["compare", "--help"])
    assert result.exit_code == 0
    assert "python-docs|brown|ptb|PATH" in result.output
    words = " ".join(result.output.split())
    for default in (
        f"blocks of 800 units. [default: {QUICK['n_hidden']}]",
        f"Features of a word, m. [default: {QUICK['embedding_dim']};",
        "Threads; -1 is all cores. [default: -1]",
    ):
        assert default in words


def test_mpi_with_one_process_says_how_to_start_more(capsys):
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    mpi_job(None)
    said = capsys.readouterr().err
    assert said.startswith("Note: --mpi has one process.") and "mpiexec -n 4" in said
    assert "OMPI_ALLOW_RUN_AS_ROOT=1" in said
