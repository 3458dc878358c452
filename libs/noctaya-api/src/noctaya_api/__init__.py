"""Contracts that the Noctaya services share: API models, names, demand core, ExternalScaler, process kit."""
