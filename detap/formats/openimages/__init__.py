"""Open Images: CSV files of normalized boxes."""
