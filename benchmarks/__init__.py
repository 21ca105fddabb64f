"""Benchmarks of detap against its peers; see README.md in this folder."""
