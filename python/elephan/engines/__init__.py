"""The engines that run a scenario: the simulator, the fluid model, the running kernel, and a kernel in virtual time."""
