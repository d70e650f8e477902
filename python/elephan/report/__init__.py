"""Reports: the results of a run, a comparison, a sweep, a reproduction or a path as one self-contained file.

`content` defines the content, `read` reads it from a results folder, `series` thins samples, `write` makes the file. The web
app shows the same content.
"""
