"""Settings from a file, and commands that take them."""
