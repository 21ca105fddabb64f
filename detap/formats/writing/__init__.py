"""Writers, one module per format; the registry names them."""
