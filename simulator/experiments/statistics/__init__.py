"""Statistics over replications: means, confidence intervals, paired differences, and numbers as text.

What lives here: estimates and how they are written. What may come in: functions of plain lists of numbers.
"""
