"""Files, streams and URLs: what reads and writes them, whatever is in them."""
