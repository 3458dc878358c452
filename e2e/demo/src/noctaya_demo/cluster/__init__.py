"""The demo on a Kubernetes cluster with KEDA: the charts, the operator, the quickstart as it is."""
