"""``nplm serve``: a JSON API and a page to look at models."""
