from nplm import KneserNeyLM, MixtureLM, NeuralLM, TextLM
from nplm.datasets import load_python_docs

corpus = load_python_docs()  # documentation that is installed anyway
network = NeuralLM(n_hidden=128, embedding_dim=64, max_iter=4, random_state=0)
mixture = MixtureLM([("network", network), ("n-grams", KneserNeyLM())])
lm = TextLM(mixture).fit(corpus.documents("train")[:2_000])

new = corpus.documents("test")[:200]
print("perplexity of new text:", round(lm.perplexity(new), 1))
print("return a list of ...  ", *lm.next_words(["return", "a", "list", "of"])[0])
print("words like 'array':   ", *lm.nearest("array", k=5)[0])
drawn = lm.generate(["If", "the"], max_words=12, random_state=0)
print("If the", *drawn)
