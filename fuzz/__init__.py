"""Fuzzing the readers: mutated files, each read in several ways that must agree.

``python -m fuzz --mutations 2000000`` needs nothing but detap; ``python -m fuzz.coverage TARGET``
is guided by coverage and needs atheris (``make fuzz`` runs both).
"""
