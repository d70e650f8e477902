"""What runs a scenario: simulator, fluid model, the running kernel."""
