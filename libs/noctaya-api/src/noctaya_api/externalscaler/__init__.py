"""KEDA's ExternalScaler contract: stubs, the servicer over any demand source, its server, and a client."""
