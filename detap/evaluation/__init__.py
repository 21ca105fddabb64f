"""From two tables and a protocol to a result: the door (detection.py) and what lies behind it."""
