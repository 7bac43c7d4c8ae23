"""Speed, as ratios to the textbook form measured in the same run: ``make bench``."""

import coband as coband  # before numpy: it has BLAS use one thread, as runs do
