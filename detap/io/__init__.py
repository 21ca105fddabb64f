"""Files, streams and URLs: reading and writing, independent of the content."""
