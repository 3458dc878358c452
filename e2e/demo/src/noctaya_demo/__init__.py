"""The demo: a real language model asleep, woken by a request, gone again."""
