"""JSON grammar of the compiled readers."""
