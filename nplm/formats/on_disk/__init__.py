"""Files of n-gram models written in bounded memory."""
