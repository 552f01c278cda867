"""The progress of long calls, shown."""
