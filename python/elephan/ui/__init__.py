"""The web app: `elephan ui`."""
