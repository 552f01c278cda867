"""Which pages pytest reads for examples: those written by hand."""

collect_ignore_glob = ["*.py", "_build/*", "auto_tutorials/*", "api/generated/*"]
