"""Reports: the results of a run, a comparison, a sweep or a reproduction as one self-contained file.

`content` defines the content, `read` reads it from a results folder, `series` thins samples, `write` makes the file. The web
app shows the same content.
"""
