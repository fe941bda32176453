from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from a2a.utils.push_url_validator import validate_push_notification_url

from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.utils.logs import configure_logging


@pytest.fixture
def configured() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logger.level for name, logger in root.manager.loggerDict.items() if hasattr(logger, "level")}
    configure_logging(load_settings({"LOG_LEVEL": "debug"}, None))
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, logger in root.manager.loggerDict.items():
        if isinstance(logger, logging.Logger):
            logger.setLevel(levels.get(name, logging.NOTSET))


@pytest.mark.usefixtures("configured")
async def test_the_url_of_a_refused_receiver_is_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    assert not await validate_push_notification_url("http://127.0.0.1/hook?key=s3cret")
    assert "s3cret" not in capsys.readouterr().err
