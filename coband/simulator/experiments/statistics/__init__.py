"""Statistics over replications: means, confidence intervals, paired differences, and formatting of numbers.

What lives here: estimates and their formatting. What may come in: functions of plain lists of numbers.
"""
