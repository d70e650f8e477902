"""Helpers for all packages: text and numbers, tables, documents, folders, figures."""
