"""An OpenAI-compatible server without a model, whose timing and failures a test decides."""
