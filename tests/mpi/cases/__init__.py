"""Cases by topic; `worker.py` runs them by name."""
