"""From text to ids, from ids to windows."""
