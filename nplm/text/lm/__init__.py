"""Language models of text: text in, text out."""
