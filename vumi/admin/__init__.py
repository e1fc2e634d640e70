"""What an operator does to the counts, on either engine."""
