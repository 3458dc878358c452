"""The `noctaya` command: LLMServices on one machine, without a cluster."""
