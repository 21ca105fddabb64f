"""What reports are made of, a file for each section: numbers in, tables and sentences out."""
