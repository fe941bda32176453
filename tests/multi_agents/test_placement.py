from __future__ import annotations

import string
from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.multi_agents.placement import (
    EVERY_AGENT,
    AgentEntry,
    is_distributed,
    needs_connectivity_check,
    parse_distributed,
    placement_problems,
    resolve,
    resolve_address,
    sandbox_is_on,
    standalone,
)
from ai_platform_engineering.settings import Settings, SettingsError, load_settings


def manifest(name: str, requires: tuple[str, ...] = (), sandbox: bool = True) -> AgentManifest:
    return AgentManifest.model_validate(
        {
            "name": name,
            "description": f"All about {name}.",
            "prompt": f"You look after {name}.",
            "requires": list(requires),
            "servers": [{"name": name, "transport": "http", "url": f"https://{name}.test/mcp"}],
            "sandbox": f"sandbox.{name}:server" if sandbox else None,
        }
    )


MANIFESTS = {
    agent.name: agent
    for agent in (
        manifest("argocd", ("ARGOCD_API_URL", "ARGOCD_API_TOKEN")),
        manifest("aws_cost", ("AWS_COST_ROLE",), sandbox=False),
        manifest("github", ("GITHUB_TOKEN",)),
        manifest("jira", ("JIRA_URL",)),
        manifest("netutils", sandbox=False),
    )
}
ARGOCD = {"ARGOCD_API_URL": "https://argocd.test", "ARGOCD_API_TOKEN": "t0ken-of-argocd"}
JIRA = {"JIRA_URL": "https://jira.test"}


def settings_of(**environ: str) -> Settings:
    return load_settings(environ, env_file=None)


def placed(environ: Mapping[str, str], manifests: Mapping[str, AgentManifest] = MANIFESTS) -> dict[str, AgentEntry]:
    settings = settings_of(**environ)
    entries = resolve(manifests, settings, sandbox_is_on(settings, manifests))
    return {entry.name: entry for entry in entries}


def places(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: entry.where for name, entry in placed(environ).items() if entry.enabled}


SANDBOX_AGENTS = {"argocd", "github", "jira", "netutils"}


class TestParsing:
    @pytest.mark.parametrize(
        ("distributed_agents", "distributed_mode", "expected"),
        [
            ("", False, set()),
            ("   ", False, set()),
            ("", True, {EVERY_AGENT}),
            (" ", True, {EVERY_AGENT}),
            ("argocd", False, {"argocd"}),
            (" ArgoCD , aws,,AWS ", False, {"argocd", "aws"}),
            ("argocd", True, {"argocd"}),
            ("all", False, {EVERY_AGENT}),
            ("argocd,ALL", False, {EVERY_AGENT}),
            (",", True, set()),
        ],
    )
    def test_values(self, distributed_agents: str, distributed_mode: bool, expected: set[str]) -> None:
        assert parse_distributed(distributed_agents, distributed_mode) == expected


@given(
    names=st.lists(st.text(string.ascii_lowercase + string.digits + "_", min_size=1, max_size=12)),
    padding=st.text(" \t", max_size=3),
    upper=st.booleans(),
    mode=st.booleans(),
)
@example(names=["all"], padding="", upper=True, mode=False)
def test_spelling_of_a_list_does_not_matter(names: list[str], padding: str, upper: bool, mode: bool) -> None:
    spelled = ",".join(f"{padding}{name.upper() if upper else name}{padding}" for name in names)
    distributed = parse_distributed(spelled, mode)
    for name in names:
        assert is_distributed(name, distributed)
    if names and "all" not in names:
        assert distributed == set(names)
        assert not is_distributed("not-in-the-list", distributed)


@given(st.text(), st.booleans())
def test_any_text_is_read(text: str, mode: bool) -> None:
    distributed = parse_distributed(text, mode)
    assert all(name == name.strip() and name for name in distributed)
    assert len(distributed) == 1 or EVERY_AGENT not in distributed


class TestAcceptance:
    def test_a_named_agent_is_remote_and_the_others_are_in_process(self) -> None:
        assert places({"DISTRIBUTED_AGENTS": "argocd"}) == {
            "argocd": "remote",
            "github": "in-process",
            "jira": "in-process",
            "netutils": "in-process",
        }

    def test_all_makes_every_enabled_agent_remote(self) -> None:
        assert places({"DISTRIBUTED_AGENTS": "all"}) == dict.fromkeys(SANDBOX_AGENTS, "remote")

    def test_distributed_mode_is_the_same_as_all(self) -> None:
        with_all = placed({"DISTRIBUTED_AGENTS": "all", **JIRA})
        with_mode = placed({"DISTRIBUTED_MODE": "true", **JIRA})
        assert {(entry.name, entry.enabled, entry.where, entry.address) for entry in with_all.values()} == {
            (entry.name, entry.enabled, entry.where, entry.address) for entry in with_mode.values()
        }
        assert with_all["jira"].why == "DISTRIBUTED_AGENTS=all"
        assert with_mode["jira"].why == "DISTRIBUTED_MODE=true"

    def test_nothing_set_means_in_process(self) -> None:
        assert places({}) == dict.fromkeys(SANDBOX_AGENTS, "in-process")

    @pytest.mark.parametrize("distributed", ["argocd", "all"])
    def test_a_disabled_agent_is_skipped_even_when_distributed(self, distributed: str) -> None:
        entry = placed({"DISTRIBUTED_AGENTS": distributed, "ENABLE_ARGOCD": "False", **ARGOCD})["argocd"]
        assert not entry.enabled
        assert entry.why == "ENABLE_ARGOCD=false"
        assert entry.address is None

    def test_distributed_agents_wins_over_distributed_mode(self) -> None:
        remote = {
            name
            for name, where in places({"DISTRIBUTED_AGENTS": "argocd", "DISTRIBUTED_MODE": "true"}).items()
            if where == "remote"
        }
        assert remote == {"argocd"}


class TestEnabling:
    def test_an_agent_with_its_settings_is_on(self) -> None:
        entry = placed(ARGOCD)["argocd"]
        assert (entry.enabled, entry.where, entry.why, entry.sandboxed) == (True, "in-process", "configured", False)

    def test_an_agent_without_its_settings_is_off_and_says_which(self) -> None:
        entries = placed({**JIRA, "ARGOCD_API_URL": "https://argocd.test"})
        assert (entries["argocd"].enabled, entries["argocd"].why) == (False, "ARGOCD_API_TOKEN is not set")
        assert placed(JIRA)["argocd"].why == "ARGOCD_API_URL and ARGOCD_API_TOKEN are not set"

    def test_an_agent_that_requires_nothing_is_on(self) -> None:
        assert placed(JIRA)["netutils"].why == "needs no settings"

    def test_all_enables_none(self) -> None:
        assert places({"DISTRIBUTED_AGENTS": "all", **JIRA}) == {"jira": "remote", "netutils": "remote"}

    def test_naming_an_agent_enables_it(self) -> None:
        entry = placed({"DISTRIBUTED_AGENTS": "github", **JIRA})["github"]
        assert (entry.enabled, entry.where, entry.why) == (True, "remote", "named in DISTRIBUTED_AGENTS")
        assert entry.address == "http://agent-github:8000"

    def test_enabling_without_settings_names_what_is_missing(self) -> None:
        entry = placed({"ENABLE_ARGOCD": "true", **JIRA})["argocd"]
        assert (entry.enabled, entry.where) == (True, "in-process")
        assert entry.why == "enabled, but ARGOCD_API_URL and ARGOCD_API_TOKEN are not set"

    @pytest.mark.parametrize("variable", ["ARGOCD_AGENT_URL", "ARGOCD_AGENT_HOST"])
    def test_an_address_alone_means_remote(self, variable: str) -> None:
        value = "http://argocd.test:8000" if variable.endswith("URL") else "argocd.test"
        entry = placed({variable: value, **JIRA})["argocd"]
        assert (entry.enabled, entry.where, entry.address) == (True, "remote", "http://argocd.test:8000")
        assert entry.why == "its address is set and nothing else is configured"

    def test_an_address_beside_local_settings_stays_in_process(self) -> None:
        entry = placed({"ARGOCD_AGENT_URL": "http://argocd.test", **ARGOCD})["argocd"]
        assert (entry.where, entry.why, entry.address) == ("in-process", "configured", None)

    def test_an_address_beside_the_sandbox_stays_in_process(self) -> None:
        entry = placed({"ARGOCD_AGENT_URL": "http://argocd.test"})["argocd"]
        assert (entry.where, entry.why, entry.sandboxed) == ("in-process", "sandbox", True)

    def test_a_port_alone_enables_nothing(self) -> None:
        assert not placed({"ARGOCD_AGENT_PORT": "9000", **JIRA})["argocd"].enabled

    def test_a_flag_that_is_neither_true_nor_false_is_refused(self) -> None:
        with pytest.raises(SettingsError, match=r"ENABLE_ARGOCD=maybe .*true"):
            placed({"ENABLE_ARGOCD": "maybe"})


class TestSandbox:
    def test_it_is_on_while_nothing_real_is_configured(self) -> None:
        entries = placed({})
        assert {name for name, entry in entries.items() if entry.sandboxed} == {"argocd", "github", "jira"}
        assert not entries["aws_cost"].enabled
        assert entries["netutils"].why == "needs no settings"

    @pytest.mark.parametrize(
        ("environ", "expected"),
        [
            ({}, True),
            (JIRA, False),
            ({"ARGOCD_API_URL": "https://argocd.test"}, True),
            ({"DISTRIBUTED_AGENTS": "argocd", "ARGOCD_AGENT_URL": "http://argocd.test"}, True),
            ({"WEATHER_AGENT_URL": "http://weather.test"}, True),
            ({"SANDBOX": "true", **JIRA}, True),
            ({"SANDBOX": "false"}, False),
        ],
    )
    def test_when_it_is_on(self, environ: dict[str, str], expected: bool) -> None:
        assert sandbox_is_on(settings_of(**environ), MANIFESTS) is expected

    def test_switched_on_it_replaces_a_configured_backend(self) -> None:
        entry = placed({"SANDBOX": "true", **JIRA})["jira"]
        assert (entry.sandboxed, entry.why) == (True, "sandbox")

    def test_switched_off_only_what_is_configured_is_left(self) -> None:
        assert places({"SANDBOX": "false"}) == {"netutils": "in-process"}

    def test_a_remote_agent_decides_on_its_own_sandbox(self) -> None:
        assert not placed({"DISTRIBUTED_AGENTS": "jira"})["jira"].sandboxed


class TestAddressOnly:
    @pytest.mark.parametrize(
        ("environ", "address", "why"),
        [
            ({"WEATHER_AGENT_URL": "https://weather.test/a2a/"}, "https://weather.test/a2a", "only a URL is known"),
            ({"WEATHER_AGENT_HOST": "weather.test"}, "http://weather.test:8000", "only a host is known"),
            (
                {"WEATHER_AGENT_HOST": "weather.test", "WEATHER_AGENT_PORT": "9001"},
                "http://weather.test:9001",
                "only a host is known",
            ),
        ],
    )
    def test_an_agent_without_a_manifest_is_remote(self, environ: dict[str, str], address: str, why: str) -> None:
        entry = placed(environ)["weather"]
        assert (entry.enabled, entry.where, entry.address, entry.why) == (True, "remote", address, why)
        assert entry.manifest is None

    def test_it_can_be_disabled(self) -> None:
        entry = placed({"WEATHER_AGENT_URL": "nonsense", "ENABLE_WEATHER": "false"})["weather"]
        assert (entry.enabled, entry.why) == (False, "ENABLE_WEATHER=false")

    @pytest.mark.parametrize(
        "variable",
        ["AGENT_URL", "AGENT_HOST", "_AGENT_URL", "OPENAI_ENDPOINT", "1ST_AGENT_URL", "weather_agent_url",
         "WEATHER_AGENT_PORT", "WEATHER_AGENT_URL_OLD", "DD_AGENT_HOST", "DD_TRACE_AGENT_URL", "JAEGER_AGENT_HOST",
         "WEATHER_AGENT_SERVICE_HOST"],
    )  # fmt: skip
    def test_other_variables_make_no_agent(self, variable: str) -> None:
        assert placed({variable: "http://somewhere.test"}).keys() == MANIFESTS.keys()

    def test_the_name_of_a_monitoring_product_can_still_be_an_agent(self) -> None:
        environ = {"JAEGER_AGENT_HOST": "jaeger.test"}
        assert "jaeger" in placed({**environ, "ENABLE_JAEGER": "true"})
        assert "jaeger" in placed({**environ, "DISTRIBUTED_AGENTS": "jaeger"})

    def test_entries_are_in_order_of_their_names(self) -> None:
        names = list(placed({"BACKUP_AGENT_URL": "http://backup.test"}))
        assert names == sorted(names)
        assert "backup" in names


class TestAddress:
    @pytest.mark.parametrize(
        ("environ", "expected"),
        [
            ({}, "http://agent-aws-cost:8000"),
            ({"AWS_COST_AGENT_PORT": "81"}, "http://agent-aws-cost:81"),
            ({"AWS_COST_AGENT_HOST": "10.0.0.7"}, "http://10.0.0.7:8000"),
            ({"AWS_COST_AGENT_HOST": "fd00::7", "AWS_COST_AGENT_PORT": "81"}, "http://[fd00::7]:81"),
            ({"AWS_COST_AGENT_HOST": "[fd00::7]"}, "http://[fd00::7]:8000"),
            ({"AWS_COST_AGENT_HOST": "cost_agent.prod.svc"}, "http://cost_agent.prod.svc:8000"),
            ({"AWS_COST_AGENT_URL": "https://u:p@cost.test/x/", "AWS_COST_AGENT_HOST": "h"}, "https://u:p@cost.test/x"),
            ({"AWS_COST_AGENT_HOST": "h", "AWS_COST_AGENT_PORT": "tcp://10.0.0.1:8000"}, "http://h:8000"),
        ],
    )
    def test_values(self, environ: dict[str, str], expected: str) -> None:
        assert resolve_address("aws_cost", environ) == expected

    @pytest.mark.parametrize(
        "environ",
        [
            {"JIRA_AGENT_URL": "jira.test:8000"},
            {"JIRA_AGENT_URL": "ftp://jira.test"},
            {"JIRA_AGENT_URL": "http://"},
            {"JIRA_AGENT_URL": "http://jira.test:99999"},
            {"JIRA_AGENT_URL": "http://[::1"},
            {"JIRA_AGENT_URL": "http://jira test"},
            {"JIRA_AGENT_URL": "http://jira.test/?key=value"},
            {"JIRA_AGENT_HOST": "http://jira.test"},
            {"JIRA_AGENT_HOST": "jira.test/path"},
            {"JIRA_AGENT_HOST": "jira", "JIRA_AGENT_PORT": "0"},
            {"JIRA_AGENT_HOST": "jira", "JIRA_AGENT_PORT": "65536"},
            {"JIRA_AGENT_HOST": "jira", "JIRA_AGENT_PORT": "eighty"},
        ],
    )
    def test_wrong_values_are_named(self, environ: dict[str, str]) -> None:
        variable, value = list(environ.items())[-1]
        with pytest.raises(SettingsError) as caught:
            resolve_address("jira", environ)
        assert str(caught.value).startswith(f"{variable}={value} ")

    def test_a_password_is_not_shown(self) -> None:
        with pytest.raises(SettingsError) as caught:
            resolve_address("jira", {"JIRA_AGENT_URL": "ftp://bob:hunter2@jira.test"})
        assert "hunter2" not in str(caught.value)

    def test_an_address_nobody_uses_is_not_checked(self) -> None:
        assert not placed({"JIRA_AGENT_URL": "nonsense", "ENABLE_JIRA": "false"})["jira"].enabled


class TestProblems:
    def problems(self, **environ: str) -> list[str]:
        return placement_problems(MANIFESTS, settings_of(**environ))

    def test_a_misspelt_name_comes_with_the_nearest_one(self) -> None:
        [problem] = self.problems(DISTRIBUTED_AGENTS="argcd,jira")
        assert "'argcd'" in problem
        assert "Did you mean 'argocd'?" in problem
        assert "ARGCD_AGENT_URL" in problem

    def test_a_dash_for_an_underscore_is_understood(self) -> None:
        [problem] = self.problems(DISTRIBUTED_AGENTS="aws-cost")
        assert "Did you mean 'aws_cost'?" in problem

    def test_a_name_like_no_other_comes_with_all(self) -> None:
        [problem] = self.problems(DISTRIBUTED_AGENTS="zzz")
        assert "Known agents: argocd, aws_cost, github, jira, netutils." in problem

    def test_known_names_are_no_problem(self) -> None:
        assert not self.problems(DISTRIBUTED_AGENTS="all")
        assert not self.problems(DISTRIBUTED_MODE="true")
        assert not self.problems(DISTRIBUTED_AGENTS="jira,weather", WEATHER_AGENT_URL="http://weather.test")

    def test_an_unknown_name_leaves_the_others_alone(self) -> None:
        assert places({"DISTRIBUTED_AGENTS": "argcd"}) == places({})


class TestServers:
    def servers(self, **environ: str) -> list[tuple[str, str | None]]:
        return [(server.transport, server.module) for server in placed(environ)["jira"].servers()]

    def test_the_sandbox_takes_the_place_of_the_real_server(self) -> None:
        assert self.servers() == [("memory", "sandbox.jira:server")]

    def test_a_configured_agent_has_the_servers_of_its_manifest(self) -> None:
        assert self.servers(**JIRA) == [("http", None)]

    def test_a_remote_agent_has_none_here(self) -> None:
        assert self.servers(DISTRIBUTED_AGENTS="jira", **JIRA) == []


class TestStandalone:
    def test_it_runs_in_this_process_whatever_the_supervisor_is_told(self) -> None:
        settings = settings_of(DISTRIBUTED_AGENTS="all", ENABLE_ARGOCD="false")
        entry = standalone("ArgoCD", MANIFESTS, settings, sandbox_on=True)
        assert (entry.name, entry.enabled, entry.where, entry.sandboxed) == ("argocd", True, "in-process", True)

    def test_without_sandbox_it_says_what_is_missing(self) -> None:
        entry = standalone("jira", MANIFESTS, settings_of(), sandbox_on=False)
        assert (entry.sandboxed, entry.why) == (False, "enabled, but JIRA_URL is not set")

    def test_an_unknown_name_comes_with_the_nearest_one(self) -> None:
        with pytest.raises(SettingsError, match="Did you mean 'github'"):
            standalone("gihub", MANIFESTS, settings_of(), sandbox_on=True)


class TestConnectivityRule:
    @pytest.mark.parametrize(
        ("environ", "expected"),
        [
            ({}, False),
            ({"DISTRIBUTED_AGENTS": "argocd"}, True),
            ({"DISTRIBUTED_MODE": "true"}, True),
            ({"WEATHER_AGENT_URL": "http://weather.test"}, True),
            ({"DISTRIBUTED_AGENTS": "argocd", "ENABLE_ARGOCD": "false"}, False),
            ({"DISTRIBUTED_AGENTS": "argocd", "SKIP_AGENT_CONNECTIVITY_CHECK": "true"}, False),
            ({"DISTRIBUTED_AGENTS": "argocd", "SKIP_AGENT_CONNECTIVITY_CHECK": "false"}, True),
            ({"SKIP_AGENT_CONNECTIVITY_CHECK": "false"}, True),
        ],
    )
    def test_checks_run_when_an_agent_is_remote_unless_told_otherwise(
        self, environ: dict[str, str], expected: bool
    ) -> None:
        assert needs_connectivity_check(settings_of(**environ), placed(environ).values()) is expected
