from nplm import KneserNeyLM, MixtureLM, NeuralLM, TextLM
from nplm.datasets import load_python_docs

corpus = load_python_docs()  # documentation that is installed anyway
network = NeuralLM(n_hidden=128, embedding_dim=64, random_state=0)
lm = TextLM(MixtureLM([("network", network), ("n-grams", KneserNeyLM())]), n_context=4)
lm.fit(corpus.documents("train")[:3_000], X_val=corpus.documents("valid")[:300])


def show(what, words, numbers):
    print(f"{what}:", ", ".join(f"{w} {x:.4g}" for w, x in zip(words, numbers)))


show("the shape of the ...", *lm.next_words(["the", "shape", "of", "the"], k=4))
show("used like 'can'", *lm.nearest("can", k=4))
heard = ["the end of the string", "the end off the string", "the and of the string"]
show("heard", heard, lm.score_samples([text.split() for text in heard]))
found = ["returns a copy of the array", "array the of copy a returns"]
show("perplexity", found, lm.perplexity([f.split() for f in found], per_document=True))
