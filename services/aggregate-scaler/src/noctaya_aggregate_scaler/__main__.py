"""`python -m noctaya_aggregate_scaler`."""

from noctaya_aggregate_scaler.app import main

main()
