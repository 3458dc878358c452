"""An OpenAI-compatible server for one GGUF model on the CPU."""
