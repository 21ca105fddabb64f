"""What looks wrong about tables that are valid."""
