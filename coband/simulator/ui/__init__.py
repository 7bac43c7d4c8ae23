"""The browser of runs: pages about all runs and sweeps below a directory, served to this machine alone.

`catalogue` finds runs and remembers what does not change; `pages` writes HTML; `gate` decides who may see it; `server`
answers requests. Nothing is written: stores are opened for reading, and only GET and HEAD are answered.
"""
