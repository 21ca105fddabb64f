"""Shared parts of the readers: bytes, numbers, ids, image sizes."""
