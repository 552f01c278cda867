"""Large vocabularies: outputs, losses and short-lists, and new words."""
