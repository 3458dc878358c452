"""A model server that costs next to nothing, so that what is measured is the proxy before it."""
