"""Files of counts, and models estimated in bounded memory."""
