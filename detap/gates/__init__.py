"""Gates: limits on metrics, baselines and reports of earlier runs."""
