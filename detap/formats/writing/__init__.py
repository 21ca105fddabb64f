"""Tables into the files of other formats: one module per format, and the door."""
