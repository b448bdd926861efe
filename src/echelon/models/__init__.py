"""What is fitted to a table and gives curves."""
