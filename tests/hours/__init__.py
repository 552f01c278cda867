"""Scripts that break nplm for as long as they are asked to; no tests of CI."""
