"""The best model for some minutes of training: `nplm.AutoLM`."""
