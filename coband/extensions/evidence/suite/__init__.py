"""A suite: frozen scenarios on which algorithms are compared fairly, and what comes out as one page."""
