"""Congestion control as an environment of Gymnasium: `elephan.gym.Environment`, and the policies that come out of it.

The environment needs the extra `elephan[gym]`; a policy does not.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
