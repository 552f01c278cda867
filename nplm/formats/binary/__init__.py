"""Binary files of n-gram models, which are mapped into memory."""
