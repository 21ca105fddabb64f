"""Mutation testing: single changes to the program, for each of which a test must fail."""
