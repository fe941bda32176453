from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.utils.a2a_common.server.push_sender import PushSender, push_policy
from ai_platform_engineering.utils.logs import configure_logging
from ai_platform_engineering.utils.outbound.policy import RefusedError


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
    sender = PushSender(push_policy(load_settings({}, None)))
    with pytest.raises(RefusedError):
        await sender.check("http://127.0.0.1/hook?key=s3cret")
    assert "s3cret" not in capsys.readouterr().err
