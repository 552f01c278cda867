"""A display, with matplotlib as the extra brings it, and without a screen."""

import numpy as np

from nplm import InterpolatedTrigram, windows
from nplm.inspection import MixtureWeightsDisplay

X, y = windows(np.arange(99) % 7, 2)
display = MixtureWeightsDisplay.from_estimator(InterpolatedTrigram().fit(X, y))
display.figure_.savefig("weights.svg")
