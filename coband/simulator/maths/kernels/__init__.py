"""Kernels: positive semidefinite functions of two points, alone, combined, and over several tasks.

What may come in: functions k(x, y); what is computed *with* a kernel is in ``posteriors``.
"""
