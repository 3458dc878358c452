"""The operator of Noctaya: one LLMService to everything that serves it, and back to a truthful status."""
