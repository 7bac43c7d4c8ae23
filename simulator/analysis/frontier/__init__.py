"""The frontier: which algorithms with which parameters nothing else beats, searched for and then measured anew."""
