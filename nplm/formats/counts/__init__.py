"""Count files, and estimation of models in bounded memory."""
