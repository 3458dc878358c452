"""A package, so that its conftest is another module than that of the directory above."""
