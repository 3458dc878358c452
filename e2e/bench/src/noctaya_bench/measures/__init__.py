"""The ten measures of docs/performance.md, one module each."""
