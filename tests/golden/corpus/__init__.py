"""Compare what two builds of detap print and write: `make corpus BASE=<commit>`."""
