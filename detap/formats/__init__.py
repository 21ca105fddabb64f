"""Files of the outside world into tables, one module per format."""
