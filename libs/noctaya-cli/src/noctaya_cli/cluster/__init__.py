"""Commands that look at a cluster with the user's own kubeconfig and only the rights they need."""
