"""Networks of PyTorch and Kneser-Ney beside nplm's, by processor time."""
