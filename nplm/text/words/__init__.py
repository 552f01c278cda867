"""Split strings into words, and map words to ids, without scikit-learn."""
