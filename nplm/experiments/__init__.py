"""The paper's comparisons."""
