"""`$(NAME)` references in a container's command, arguments and environment, as Kubernetes expands them.

A reference to a variable that isn't defined stays as it is; `$$` is an escaped `$`, so `$$(NAME)` gives the
text `$(NAME)`. This is not a shell: `$NAME` and `${NAME}` mean nothing here.
"""

import re
from collections.abc import Iterable, Mapping

REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`text` with every reference to a name in `variables` replaced."""

    def replacement(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return variables.get(match[1], match[0])

    return REFERENCE.sub(replacement, text)


def expand_environment(entries: Iterable[tuple[str, str]], *, given: Mapping[str, str]) -> dict[str, str]:
    """Container environment in order: each value may refer to `given` and to entries before it."""
    known = dict(given)
    result: dict[str, str] = {}
    for name, value in entries:
        result[name] = known[name] = expand(value, known)
    return result
