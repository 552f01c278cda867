"""N-gram and class models: speed and memory beside other tools, and perplexity."""
