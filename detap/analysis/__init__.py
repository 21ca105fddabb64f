"""What follows from results: where a detector errs, how sure a number is, how two differ."""
