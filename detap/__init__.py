"""How good an object detector is, and whether today's is worse than yesterday's."""
