"""Imports every module of a package, so that an image of half a change is never made.

    imports.py PACKAGE

Also proves that nothing was taken out of the image's libraries that the package needs.
"""

import importlib
import pkgutil
import sys


def main(package: str) -> None:
    """Import all of it, save what runs at import."""
    root = importlib.import_module(package)
    for module in pkgutil.walk_packages(root.__path__, f"{package}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


if __name__ == "__main__":
    main(sys.argv[1])
