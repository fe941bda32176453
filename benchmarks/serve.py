"""The product with scripted models, as a process to be measured: `python -m benchmarks.serve supervisor|agent`."""

from __future__ import annotations

import argparse
import cProfile
import os
import signal
import sys
from unittest import mock

os.environ.setdefault("OTEL_INSTRUMENTATION_A2A_SDK_ENABLED", "false")

from langchain_core.language_models import BaseChatModel

from ai_platform_engineering.graphs import agent_graph
from ai_platform_engineering.graphs.agent_models import model_for
from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Settings, load_settings
from ai_platform_engineering.utils.connection_limits import ConnectionLimits
from ai_platform_engineering.utils.serving import listen, run
from benchmarks.scenario import ANSWER_WORDS, agent_model, supervisor_model


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["supervisor", "agent"])
    parser.add_argument("--words", type=int, default=ANSWER_WORDS)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--provider", action="store_true", help="the models of the settings, not those of the script")
    parser.add_argument("--counted", action="store_true", help="count calls of functions, and say so on SIGUSR1")
    parser.add_argument("--prepare-traces", action="store_true", help="as LangChain does, also while tracing is off")
    options = parser.parse_args()
    if options.prepare_traces:
        mock.patch.object(agent_graph, "trace_hooks_on_demand").start()

    def models(settings: Settings, manifest: AgentManifest | None) -> BaseChatModel:
        if options.provider:
            return model_for(settings, manifest)
        return agent_model() if manifest else supervisor_model(words=options.words, delay=options.delay)

    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    settings = load_settings({**os.environ, "A2A_PORT": str(port)}, env_file=None)
    if options.what == "agent":
        app = create_agent_app(settings, "argocd", models)
    else:
        app = create_app(settings, PlatformEngineerDeepAgent(settings, models=models))

    def ready() -> None:
        print(f"http://127.0.0.1:{port}", flush=True)
        if options.counted:
            count_calls()

    return run(app, listener, ready, ConnectionLimits.of(settings))


def count_calls() -> None:
    """In this thread, from now on. Every SIGUSR1 has the number of them written, and begins anew."""
    profile = cProfile.Profile()

    def tell(*_: object) -> None:
        profile.disable()
        print(sum(entry.callcount for entry in profile.getstats()), flush=True)
        profile.clear()
        profile.enable()

    signal.signal(signal.SIGUSR1, tell)
    profile.enable()


if __name__ == "__main__":
    sys.exit(main())
