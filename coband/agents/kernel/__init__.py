"""Kernel bandits with a server: Async-KernelUCB, (Approx-)DisKernelUCB, OneKernelUCB, BPE, DUETS and FTS."""
