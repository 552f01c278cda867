"""Commands that count, mix, prune and expand n-grams."""
