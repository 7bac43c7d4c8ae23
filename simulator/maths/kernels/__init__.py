"""Kernels: positive semidefinite functions of two points, alone, combined, and over several tasks.

What lives here: kernel functions, their parameters as users write them, and kernels bound to fixed points.
What may come in: functions k(x, y); what is computed *with* a kernel is in ``posteriors``.
"""
