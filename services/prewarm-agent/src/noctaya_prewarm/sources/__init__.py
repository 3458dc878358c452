"""Where models come from. A source lists what it has at a pinned revision and says how to ask for a file."""
