"""C1: how long a cold start takes on a real cluster with KEDA, and whose time it is."""
