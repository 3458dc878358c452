"""The kit of the end-to-end scenarios: a cluster, services on it, clients of them, faults."""
