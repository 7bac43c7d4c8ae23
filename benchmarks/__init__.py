"""Speed, as ratios to the textbook form measured in the same run: ``make bench``."""
