"""Binary files of n-gram models, mapped into memory."""
