"""Whatever trains in passes: the loop, its saves, EM."""
