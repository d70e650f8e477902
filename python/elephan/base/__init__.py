"""What every room needs: text and numbers for people, tables, documents, folders, pictures."""
