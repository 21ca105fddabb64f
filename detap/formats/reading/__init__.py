"""What the readers of all formats share: files, numbers, columns, ids, problems."""
