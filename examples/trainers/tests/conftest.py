import logging

import pytest

ROOT, MANAGER = logging.Logger.root, logging.Logger.manager


@pytest.fixture(autouse=True)
def heard():
    """AReaL's logging, once imported, puts another root and manager of loggers in the place of Python's, and silences those there were."""
    logging.Logger.root, logging.Logger.manager = ROOT, MANAGER
    logging.getLogger("turnpack_trainers").disabled = False
