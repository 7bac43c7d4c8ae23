"""What installed packages offer to coband, and what the classes that they offer say of their fields."""
