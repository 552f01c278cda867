"""The network of the paper and its estimator."""
