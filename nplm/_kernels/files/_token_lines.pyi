from nplm.base.array_types import Bytes, Floats, Ids

class Lines: ...

def format_tokens(
    documents: list[str] | list[list[str]],
    end: str | None,
    log10: Floats,
    order: Ids | None,
    unknown: Bytes | bytes | memoryview,
    totals: Floats,
) -> str: ...
