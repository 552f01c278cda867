# The compiled modules carry no type information.
from typing import Any

def __getattr__(name: str) -> Any: ...
