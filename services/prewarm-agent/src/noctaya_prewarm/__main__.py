"""`python -m noctaya_prewarm`."""

from noctaya_prewarm.cli import main

main()
