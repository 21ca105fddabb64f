"""Evaluation on other processes, by Dask."""
