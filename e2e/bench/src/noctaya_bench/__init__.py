"""The benchmark: measures P1 to P10 of docs/performance.md against peers in the same run."""
