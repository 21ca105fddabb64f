"""Numbers against limits: names, verdicts, the one judge, and earlier reports."""
