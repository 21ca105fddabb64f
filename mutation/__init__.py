"""Whether the tests would notice a defect: single changes to the program, each expected to fail."""
