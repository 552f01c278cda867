"""Fitted estimators in a file: `nplm.save` and `nplm.load`."""
