"""Models that ``nplm train`` fits in memory, and those of some minutes."""
