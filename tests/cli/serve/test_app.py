"""The API: its figures are the models', its answers fit its description."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nplm
from nplm import InterpolatedTrigram, TextLM, load
from nplm.base.estimators.language_model import LanguageModel
from nplm.formats import read_arpa

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
pytest.importorskip("fastapi", reason="FastAPI is not installed")

from nplm.cli import serve  # noqa: E402
from nplm.cli.serve import messages  # noqa: E402

LOG2_10 = math.log2(10)
PAGE = Path(serve.__file__).with_name("page")
WORDS = st.sampled_from(["a", "cat", "saw", "the", "dog", "sat", "zebra"])


@pytest.fixture(scope="module")
def description(client):
    return client.get("/openapi.json").json


@pytest.fixture(scope="module")
def check(description):
    """Raise unless an answer fits the description of its path and status."""

    def check(response, path, method="post"):
        answers = description["paths"][path][method]["responses"]
        content = answers[str(response.status)]["content"]["application/json"]
        schema = content["schema"] | {"components": description["components"]}
        jsonschema.validate(response.json, schema)
        return response.json

    return check


def test_models_are_named_with_what_they_have(client, served, check):
    about = check(client.get("/models"), "/models", "get")
    assert about["text"] == "the dog"
    assert [
        (m["name"], m["kind"], m["has_features"], m["n_context"], m["boundary"])
        for m in about["models"]
    ] == [
        ("n-grams", "KneserNeyLM", False, 2, "</s>"),
        ("mixture", "MixtureLM", True, 2, "</s>"),
    ]
    assert {m["n_words"] for m in about["models"]} == {served["mixture"].n_words_}


def test_the_page_has_a_name_for_each_kind_of_model():
    public = {name: getattr(nplm, name) for name in nplm.__all__}
    classes = {name: kind for name, kind in public.items() if isinstance(kind, type)}
    kinds = {n for n, kind in classes.items() if issubclass(kind, LanguageModel)}
    table = (PAGE / "tools.js").read_text().partition("KINDS = ")[2]
    assert set(re.findall(r'(\w+): "[^"]+"', table.partition("}));")[0])) == kinds


@settings(max_examples=30)
@given(lines=st.lists(st.lists(WORDS, max_size=4).map(" ".join), max_size=3))
@pytest.mark.parametrize("model", ["n-grams", "mixture"])
def test_scores_are_the_models(client, served, check, model, lines):
    question = {"text": "\n".join(lines), "model": model}
    found = check(client.post("/score", question), "/score")
    lm, kept = served[model], [line for line in lines if line]
    assert [line["text"] for line in found["lines"]] == kept
    bits = [t["bits"] for line in found["lines"] for t in line["tokens"]]
    assert len(bits) == found["n_tokens"]
    assert found["n_unknown"] == " ".join(lines).split().count("zebra")
    if not kept:
        assert (found["perplexity"], found["bits"]) == (None, 0)
        return
    assert found["perplexity"] == pytest.approx(lm.perplexity(kept))
    expected = -lm.score_samples(kept).sum() / math.log(2)
    assert sum(bits) == pytest.approx(found["bits"]) == pytest.approx(expected)
    for line in found["lines"]:
        for token in line["tokens"]:
            shares = [m["weight"] * 2 ** -m["bits"] for m in token["members"]]
            if model == "mixture":
                assert sum(shares) == pytest.approx(2 ** -token["bits"])
                assert [m["order"] is None for m in token["members"]] == [False, True]
            else:
                assert token["members"] == [] and token["order"] >= 1


def test_only_a_line_feed_ends_a_line(client, check):
    question = {"text": "the\u2028cat\x85sat\x0b\r\n \nthe dog"}
    answer = check(client.post("/score", question), "/score")
    lines = [line["text"] for line in answer["lines"]]
    assert lines == ["the\u2028cat\x85sat\x0b", "the dog"]


def test_next_words_are_the_models(client, served, check):
    question = {"text": "the cat", "model": "mixture", "k": 4}
    found = check(client.post("/next", question), "/next")
    words, proba = served["mixture"].next_words("the cat", 4, unknown=True)
    assert [word["word"] for word in found["words"]] == words
    np.testing.assert_allclose([w["probability"] for w in found["words"]], proba)
    assert found["members"] == [
        {"name": "kn", "weight": 0.25},
        {"name": "net", "weight": 0.75},
    ]
    for word in found["words"]:
        kn, net = (member["probability"] for member in word["members"])
        assert 0.25 * kn + 0.75 * net == pytest.approx(word["probability"])


def test_a_position_is_predicted_from_what_is_before_it(client, check):
    inside = client.post("/next", {"text": "the cat sat", "position": 1})
    alone = client.post("/next", {"text": "the"})
    assert check(inside, "/next") == check(alone, "/next")
    assert client.post("/next", {}).json == client.post(
        "/next", {"text": "the cat", "position": 0}
    ).json  # fmt: skip


def test_nearest_words_are_the_models(client, served, check):
    question = {"word": "cat", "model": "mixture", "k": 3}
    found = check(client.post("/nearest", question), "/nearest")
    words, cosines = served["mixture"].nearest("cat", 3)
    assert [word["word"] for word in found["words"]] == words
    np.testing.assert_allclose([w["cosine"] for w in found["words"]], cosines)


def test_the_map_has_the_most_frequent_words(client, served, check):
    question = {"model": "mixture", "n_words": 5}
    found = check(client.post("/map", question), "/map")
    words = [place["word"] for place in found["words"]]
    assert words == served["mixture"].vocabulary_.words_[:5].tolist()
    positions = np.array([[place["x"], place["y"]] for place in found["words"]])
    np.testing.assert_allclose(positions.mean(axis=0), 0, atol=1e-6)
    assert 0 < sum(found["explained"]) <= 1 + 1e-6


LONG = "x" * (messages.MAX_TEXT_CHARS + 1)


@pytest.mark.parametrize(
    ("path", "question", "status", "sentence"),
    [
        ("/score", {"text": LONG}, 422, "text: .* at most 10000 characters"),
        ("/score", {"text": 3}, 422, "text: .*string"),
        ("/score", {}, 422, "text: Field required"),
        ("/score", {"text": "a", "word": "a"}, 422, "word: Extra"),
        ("/score", {"text": "a \ud800"}, 422, "text: .*string"),
        ("/score", [], 422, "not an object of JSON: .*Content-Type: application/json"),
        ("/score", {"text": "a", "model": "x"}, 404, "the models are 'n-grams', 'mix"),
        ("/next", {"text": "a", "k": 101}, 422, "k: .*less than or equal to 100"),
        ("/next", {"text": "a", "k": "5"}, 422, "k: .*integer"),
        ("/next", {"text": "a", "k": 0}, 422, "k: .*greater than or equal to 1"),
        ("/next", {"text": "a", "position": 2}, 422, "position must be from 0 to 1"),
        ("/nearest", {"word": "zebra", "model": "mixture"}, 404, "'zebra' is not in"),
        ("/nearest", {"word": "", "model": "mixture"}, 422, "word: .*at least 1"),
        ("/nearest", {"word": "cat"}, 404, "'n-grams', a KneserNeyLM, has no features"),
        ("/map", {}, 404, "'n-grams', a KneserNeyLM, has no features"),
        ("/map", {"model": "mixture", "n_words": 2001}, 422, "n_words: .*2000"),
    ],
)
def test_requests_are_refused_by_a_sentence(
    client, check, path, question, status, sentence
):
    response = client.post(path, question)
    assert response.status == status, response.text
    error = check(response, path)["error"]
    assert re.search(sentence, error) and error.endswith(".")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"{", "the request is not JSON: Expecting .* at character 1."),
        (b'{"text": "caf\xe9"}', "the request cannot be read as JSON in UTF-8."),
        (
            b'{"k": ' + b"9" * 5_000 + b"}",
            "the request cannot be read as JSON in UTF-8.",
        ),
        (b"[" * 99_999, "the request cannot be read as JSON in UTF-8."),
    ],
)
def test_what_is_no_json_is_refused_by_a_sentence(client, check, body, sentence):
    response = client.post("/score", body)
    assert response.status == 400
    assert re.fullmatch(sentence, check(response, "/score")["error"])


@pytest.mark.parametrize("path", ["/nothing", "/../app.py", "/%00", "/%ff", "/a/b"])
def test_the_page_has_its_own_files_only(client, path):
    assert client.get(path).status == 404
    assert re.fullmatch(r"GET /.*: not found\.", client.get(path).json["error"])
    posted = client.post(path, {"text": "a"})
    assert posted.status == 404
    assert re.fullmatch(r"POST /.*: not found\.", posted.json["error"])


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/score", "POST"), ("HEAD", "/next", "POST"), ("PUT", "/map", "POST"),
        ("POST", "/models", "GET"), ("DELETE", "/openapi.json", "GET"),
        ("POST", "/", None), ("PUT", "/page.js", None),
    ],
)  # fmt: skip
def test_a_method_that_a_path_lacks_is_told_from_a_path(client, method, path, allowed):
    response = client.ask(method, path)
    assert response.status == 405
    if method != "HEAD":
        assert response.json["error"] == f"{method} {path}: method not allowed."
    if allowed is not None:
        assert allowed in response.headers["allow"]


@pytest.mark.parametrize("path", ["/", "/page.js", "/models", "/openapi.json"])
def test_head_has_the_headers_of_get(client, path):
    head, get = client.ask("HEAD", path), client.get(path)
    assert (head.status, head.text) == (200, "") and get.text
    for name in ("content-length", "content-type"):
        assert head.headers[name] == get.headers[name]


def test_health_is_told_by_any_name(client, check):
    response = client.get("/health", host="10.0.0.7:8000")
    assert check(response, "/health", "get") == {"status": "ok"}


@pytest.mark.parametrize("in_chunks", [False, True])
def test_large_requests_are_refused(client, check, in_chunks):
    body = b" " * (messages.MAX_BODY_BYTES + 1)
    given = iter([body[:-1], body[-1:]]) if in_chunks else body
    response = client.ask("POST", "/score", body=given)
    assert response.status == 413
    assert "send less text" in check(response, "/score")["error"]


def test_the_longest_text_fits_however_it_is_escaped(client):
    text = "\U0001f600" * messages.MAX_TEXT_CHARS
    response = client.post("/score", {"text": text, "model": "n-grams"})
    assert response.status == 200, response.text


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200), ("LOCALHOST:80", 200), ("127.0.0.1:8000", 200),
        ("[::1]:8000", 200), ("evil.example", 421), ("localhost.evil.example", 421),
        ("", 421), ("[", 421),
    ],
)  # fmt: skip
def test_only_names_of_this_machine_are_answered(client, host, status):
    for path in ("/", "/models"):
        response = client.get(path, host=host)
        assert response.status == status
        if status != 200:
            assert (
                "open it as 127.0.0.1 or ::1 or localhost, or start it" in response.text
            )


def test_any_name_is_answered_where_the_server_is_for_others(serving, served):
    with serving(served, hosts=None) as client:
        assert client.get("/models", host="any.example").status == 200


@pytest.mark.parametrize("path", ["/", "/page.js", "/models", "/score", "/nothing"])
def test_answers_forbid_what_is_from_elsewhere(client, path):
    headers = client.get(path, origin="http://evil.example").headers
    assert "access-control-allow-origin" not in headers
    assert headers["x-content-type-options"] == "nosniff"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert set(re.findall(r"-src ([^;]+)", policy)) == {"'none'", "'self'"}


def test_the_page_needs_its_own_files_only(client):
    files = {path.name for path in PAGE.iterdir()}
    text = "".join(path.read_text(encoding="utf-8") for path in PAGE.iterdir())
    assert set(re.findall(r"https?://[^\"'\s]+", text)) == {
        "http://www.w3.org/2000/svg"
    }
    used = re.findall(r'(?:src|href)="([^"]+)"|from "\./([^"]+)"', text)
    for name in {one or two for one, two in used} - {"openapi.json"}:
        assert name in files
        assert client.get(f"/{name}").status == 200
    assert "text/html" in client.get("/").headers["content-type"]
    assert "javascript" in client.get("/page.js").headers["content-type"]


def test_the_page_asks_for_what_is_described(description):
    script = (PAGE / "page.js").read_text(encoding="utf-8")
    asked = set(re.findall(r'ask(?:Only)?\((?:"\w+", )?\s*"(\w+)"', script))
    assert {f"/{path}" for path in asked} == set(description["paths"]) - {"/health"}


def test_infinite_surprisals_are_null(serving):
    lm = TextLM(InterpolatedTrigram(), n_context=2).fit(["a b"] * 20)
    lm.estimator_.weights_[:] = [0, 0, 0, 1]
    with serving({"trigram": lm}) as client:
        found = client.post("/score", {"text": "b"}).json
    assert (found["bits"], found["perplexity"]) == (None, None)
    assert found["lines"][0]["tokens"][0]["bits"] is None


def test_probabilities_above_1_are_the_models(serving, tmp_path, check):
    (tmp_path / "arpa").write_text(
        "\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-0.1\ta\t0.3\n-99\t<s>\n"
        "-1\t</s>\n-2\t<unk>\n\n\\2-grams:\n-1\t<s> a\n-1\ta </s>\n\n\\end\\\n"
    )
    ngrams, words = read_arpa(tmp_path / "arpa")
    lm = TextLM.from_model(ngrams, words, boundary=ngrams.boundary)
    with serving({"file": lm}) as client:
        scores = check(client.post("/score", {"text": "a a"}), "/score")
        [most, *_] = check(client.post("/next", {"text": "a"}), "/next")["words"]
    assert scores["lines"][0]["tokens"][1]["bits"] == pytest.approx(-0.2 * LOG2_10)
    assert most["word"] == "a" and most["probability"] == pytest.approx(10**0.2)


def test_a_model_without_unknown_words_refuses_them_by_a_sentence(serving):
    trigram = InterpolatedTrigram(n_words=3).fit([[1, 2]] * 20, [0] * 20)
    lm = TextLM.from_model(trigram, ["</s>", "a", "b"], boundary=0)
    with serving({"known": lm}) as client:
        response = client.post("/score", {"text": "zebra"})
    assert response.status == 422
    assert "zebra" in response.json["error"]


def test_a_fault_of_the_server_is_not_shown(client, monkeypatch):
    monkeypatch.setattr("nplm.cli.serve.app.surprisals", lambda *given: 1 / 0)
    response = client.post("/score", {"text": "a"})
    assert response.status == 500
    assert response.json == {
        "error": "the server failed: its terminal shows the error."
    }


def test_effects_are_the_bits_lost_without_each_word(client, served, check):
    question = {"text": "the dog saw a", "model": "mixture", "position": 3}
    assert check(client.post("/next", question), "/next")["effects"] == []
    found = check(client.post("/next", question | {"effects": True}), "/next")
    lm = served["mixture"]

    def bits(text):
        return -lm.token_scores([text])[0].log_prob[3] / math.log(2)

    variants = ["zebra dog saw a", "the zebra saw a", "the dog zebra a"]
    expected = [bits(text) - bits("the dog saw a") for text in variants]
    assert found["effects"] == pytest.approx(expected, abs=1e-5)


def test_files_of_kenlm_are_served(serving):
    data = Path(__file__).parents[2] / "formats" / "kenlm_data"
    models = {name: load(data / name) for name in ("trie-a", "model.arpa")}
    with serving(models) as client:
        for path, question in (
            ("/next", {"text": "a rose", "k": 3}),
            ("/score", {"text": "a rose is a"}),
        ):
            answers = [client.post(path, question | {"model": m}) for m in models]
            assert answers[0].status == 200, answers[0].text
            found, expected = (sorted_numbers(answer.json) for answer in answers)
            assert found == pytest.approx(expected, rel=1e-5)


def sorted_numbers(value):
    """Return all numbers of a value of JSON."""
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value)]
    if isinstance(value, list):
        return [number for item in value for number in sorted_numbers(item)]
    return [value] if isinstance(value, (int, float)) else []
