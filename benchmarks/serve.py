"""The product with scripted models, as a process to be measured: `python -m benchmarks.serve supervisor|agent`."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("OTEL_INSTRUMENTATION_A2A_SDK_ENABLED", "false")

from ai_platform_engineering.multi_agents import agent_app
from ai_platform_engineering.multi_agents.agent_registry import AgentRegistry
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.serving import listen, run
from ai_platform_engineering.settings import load_settings
from benchmarks.scenario import MANIFEST, models


def main(what: str) -> int:
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    settings = load_settings({**os.environ, "A2A_PORT": str(port)}, env_file=None)
    if what == "agent":
        app = agent_app.create_agent_app(settings, MANIFEST.name, models)
    else:
        registry = AgentRegistry(settings, {MANIFEST.name: MANIFEST})
        app = create_app(settings, PlatformEngineerDeepAgent(settings, registry, models=models))
    return run(app, listener, lambda: print(f"http://127.0.0.1:{port}", flush=True))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
