"""JSON, exactly and with care."""
