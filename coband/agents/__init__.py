"""What runs on each client: one file per algorithm family."""
