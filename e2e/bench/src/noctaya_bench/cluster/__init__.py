"""A Kubernetes API for the operator's measures: who lives in it besides the operator, and how to read it."""
