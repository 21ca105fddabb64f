"""Other evaluators' interfaces over detap's core, for code that was written against them."""
