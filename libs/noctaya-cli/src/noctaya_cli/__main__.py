"""`python -m noctaya_cli`, the same as `noctaya`."""

from noctaya_cli.main import app

app()
