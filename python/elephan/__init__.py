"""Elephan: a laboratory for congestion control on long fat networks.

>>> import elephan
>>> run = elephan.run(elephan.dumbbell(rate="250 Mbit/s", rtt="82 ms", buffer="20% bdp",
...                   flows=[elephan.flow("htcp"), elephan.flow("htcp", start="2 s")], duration="10 s"))
>>> run.summary.utilisation > 0.5
True
"""

import lazy_loader

# Each name is imported when it is first asked for: together they take a second. `__init__.pyi` says where they are.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
