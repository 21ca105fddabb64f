"""From rows that call images and classes by name to tables: what most formats end in."""
