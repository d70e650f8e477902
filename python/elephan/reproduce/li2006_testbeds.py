"""Li 2006: chapters 3, 5, 6 and 9."""
