from nplm import KneserNeyLM, MixtureLM, NeuralLM, TextLM
from nplm.datasets import load_python_docs

corpus = load_python_docs()  # documentation that is installed anyway
network = NeuralLM(n_hidden=128, embedding_dim=64, random_state=0)
lm = TextLM(MixtureLM([("network", network), ("n-grams", KneserNeyLM())]), n_context=4)
lm.fit(corpus.documents("train")[:3_000], X_val=corpus.documents("valid")[:300])

print("the shape of the ... ", *lm.next_words(["the", "shape", "of", "the"], k=4)[0])
print("words like 'can':    ", *lm.nearest("can", k=4)[0])
heard = ["the end off the string", "the end of the string", "the and of the string"]
likeliest = lm.score_samples([text.split() for text in heard]).argmax()
print("the likeliest of 3:  ", heard[likeliest])
found = ["returns a copy of the array", "array the of copy a returns"]
perplexity = lm.perplexity([text.split() for text in found], per_document=True)
print("perplexities:        ", *perplexity.round().astype(int))
