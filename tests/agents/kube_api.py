"""A Kubernetes API with one Secret and one ConfigMap, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.multi_agents.loopback import Loopback, Request, response, serving

PASSWORD = "aHVudGVyMg=="
NAMESPACE = "/api/v1/namespaces/default"


def _resource(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "singularName": kind.lower(), "namespaced": True, "kind": kind, "verbs": ["get", "list"]}


def _object(kind: str, data: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "shop", "namespace": "default"}, "data": data}


_SECRET = _object("Secret", {"password": PASSWORD})
_ANSWERS: dict[str, dict[str, Any]] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [_resource("secrets", "Secret"), _resource("configmaps", "ConfigMap")],
    },
    f"{NAMESPACE}/secrets": {"kind": "SecretList", "apiVersion": "v1", "items": [_SECRET]},
    f"{NAMESPACE}/secrets/shop": _SECRET,
    f"{NAMESPACE}/configmaps/shop": _object("ConfigMap", {"colour": "blue"}),
}


@asynccontextmanager
async def kube_api(kubeconfig: Path) -> AsyncIterator[Loopback]:
    """Serves, and writes how to reach it into `kubeconfig`."""

    async def answer(request: Request) -> bytes:
        body = _ANSWERS.get(request[0].partition("?")[0])
        return response(404 if body is None else 200, body or {}, "content-type: application/json\r\n")

    async with serving(answer) as api:
        write_kubeconfig(kubeconfig, api.address)
        yield api


def write_kubeconfig(file: Path, address: str) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": address}}],
        "users": [{"name": "u", "user": {"token": "x"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    file.write_text(yaml.safe_dump(config))
