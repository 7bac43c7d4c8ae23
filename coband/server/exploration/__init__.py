"""The server of CoKernelFC and CoKernelFB."""
