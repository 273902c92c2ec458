"""Continuous-time sequence models that skip what is predictable.

The names of `__init__.pyi` are the whole public API. They load on first use, so that importing the
package costs nothing until a model or a tensor is needed.
"""

from importlib.metadata import version

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = version("skipstone")
