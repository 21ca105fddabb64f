"""Build tables from rows that name their images and classes."""
