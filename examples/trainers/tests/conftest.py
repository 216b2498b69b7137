import logging

import pytest


@pytest.fixture(autouse=True)
def heard():
    """AReaL's logging, once imported, silences the loggers made before it and those made after, the package's among them."""
    log = logging.getLogger("turnpack_trainers")
    log.disabled, log.propagate = False, True
