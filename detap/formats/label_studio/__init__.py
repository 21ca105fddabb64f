"""Label Studio: a JSON list of tasks, in full or as JSON-MIN."""
