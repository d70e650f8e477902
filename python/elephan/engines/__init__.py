"""The engines that run a scenario: the simulator, the fluid model, and the running kernel."""
