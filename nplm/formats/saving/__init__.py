"""Save fitted estimators, and read them: `nplm.save`."""
