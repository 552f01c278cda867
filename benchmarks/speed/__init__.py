"""Speed of the kernels, beside PyTorch, the processor and other versions."""
