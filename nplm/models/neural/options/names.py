"""Map names of options' parameters to full names, such as ``solver__epsilon``."""

from __future__ import annotations

from collections.abc import Mapping

from nplm.models.neural.options.features import Features
from nplm.models.neural.options.losses import Importance
from nplm.models.neural.options.outputs import Classes, Softmax, Tree
from nplm.models.neural.options.solvers import Adam

OWNERS = {
    "features": (Features,), "output": (Softmax, Classes, Tree),
    "loss": (Importance,), "solver": (Adam,),
}  # fmt: skip
FULL_NAMES = {
    name: f"{parameter}__{name}"
    for parameter, kinds in OWNERS.items()
    for kind in kinds
    for name in kind().get_params(deep=False)
}


def grouped(settings: Mapping[str, object]) -> dict[str, object]:
    """Return settings with the full names that ``set_params`` takes.

    Parameters
    ----------
    settings : mapping of str
        Parameters of a `NeuralLM` or `EnergyLM`; those of an option by their own name,
        such as ``learning_rate``.

    Returns
    -------
    params : dict of str
        Settings, with those of options under names such as ``solver__learning_rate``.

    Examples
    --------
    >>> from nplm.experiments import grouped
    >>> grouped({"n_hidden": 8, "learning_rate": "constant"})
    {'n_hidden': 8, 'solver__learning_rate': 'constant'}
    """
    return {FULL_NAMES.get(name, name): value for name, value in settings.items()}
