"""Tasks of documents: classification, and detection of outliers."""
