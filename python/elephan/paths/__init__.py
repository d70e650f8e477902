"""What is measured of real paths and hosts, and what follows from it."""
