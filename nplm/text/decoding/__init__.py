"""Language models for the decoders of other packages, and n-best lists."""
