"""Bad input, hostile input and problems_of_run, through the real command.

`cases` is the corpus, made by code; `runner` runs it; `judge` finds what is wrong with what came
out. ``python -m tests.reliability`` runs the same corpus over other evaluators and writes the
comparison of docs/reliability.md.
"""
