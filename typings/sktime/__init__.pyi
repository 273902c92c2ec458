# Stubs: to read the types of sktime itself takes a checker many minutes.
from typing import Any

def __getattr__(name: str) -> Any: ...
