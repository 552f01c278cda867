"""A network as a file of ONNX, which its own checker takes."""

import numpy as np
import onnx

from nplm import NeuralLM, windows
from nplm.formats import write_onnx

X, y = windows(np.arange(99) % 7, 2)
write_onnx(NeuralLM(n_hidden=3, max_iter=1, random_state=0).fit(X, y), "lm.onnx")
onnx.checker.check_model("lm.onnx", full_check=True)
