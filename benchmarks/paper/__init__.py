"""The figures of the paper, beside nplm's."""
