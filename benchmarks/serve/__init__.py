"""The server of `nplm serve`."""
