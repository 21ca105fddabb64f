"""Explain metric differences between protocols and reports; find the protocol of a value."""
