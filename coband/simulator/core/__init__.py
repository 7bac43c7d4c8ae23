"""Time, network, faults, accounting, random streams and trace: the machinery without mathematics."""
