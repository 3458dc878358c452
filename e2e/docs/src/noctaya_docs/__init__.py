"""Documentation as something that is built and run: its commands, its links, its site."""
