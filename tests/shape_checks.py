"""The run-time type checker that the tests put on every annotated function."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
