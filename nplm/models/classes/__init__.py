"""Word classes and the class-based model."""
