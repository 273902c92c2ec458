"""Continuous-time sequence models that skip what is predictable.

The names of `__init__.pyi` are the whole public API. They load on first use, so that importing the
package costs nothing until a model or a tensor is needed. Nothing is imported before that, not even
what loads them: until the command can answer Ctrl-C, Python would, with a traceback.
"""


def __getattr__(name: str) -> object:
    """The first use of a name: from then on `lazy_loader` answers."""
    from importlib.metadata import version

    import lazy_loader

    load, names, public = lazy_loader.attach_stub(__name__, __file__)
    known = {"__getattr__": load, "__dir__": names, "__all__": public}
    globals().update(known, __version__=version("skipstone"))
    return globals()[name] if name in globals() else load(name)


def __dir__() -> list[str]:
    return list(__getattr__("__all__"))  # pyright: ignore[reportArgumentType, reportCallIssue]
