"""Pictures of results: `kinds` declares each kind once, `data` is what a picture consists of, `draw` draws it with matplotlib.

Reports and the page show the same data.
"""
