"""Argo CD in the sandbox."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from pydantic import Field

from ai_platform_engineering.mcp.tool_server import ToolError, ToolServer
from ai_platform_engineering.sandbox.records import (
    OWNER,
    Application,
    ApplicationProject,
    Deployment,
    Health,
    Revision,
    SyncStatus,
)
from ai_platform_engineering.sandbox.store import SandboxSession, SandboxStore
from ai_platform_engineering.sandbox.tools import choice, full_names, new_server, unknown
from ai_platform_engineering.settings import Settings

ApplicationArgument = Annotated[str, Field(description="Name of the application, for example guestbook.")]

_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_LABEL_IN_WORDS = "Use up to 63 lower-case letters, digits and '-', with no '-' at either end."


def server(settings: Settings) -> ToolServer:
    """The MCP server over the sandbox file of these settings."""
    argocd = ArgoCd(SandboxStore.of(settings))
    return new_server(
        "argocd",
        reads=[
            argocd.version_service__version,
            argocd.list_applications,
            argocd.get_application,
            argocd.get_application_history,
            argocd.list_projects,
        ],
        writes=[argocd.create_application, argocd.sync_application],
        destructive=[argocd.rollback_application],
    )


@dataclass(frozen=True)
class ArgoCd:
    store: SandboxStore

    def version_service__version(self) -> dict[str, Any]:
        """Show the version of the Argo CD server and of the tools it is built with."""
        with self.store.read() as session:
            return dict(session.organization().argocd_version)

    def list_applications(
        self,
        project: Annotated[str | None, Field(description="Only applications of this project.")] = None,
        health: Annotated[
            Health | None, choice(*get_args(Health)), Field(description="Only applications with this health.")
        ] = None,
        sync_status: Annotated[
            SyncStatus | None,
            choice(*get_args(SyncStatus)),
            Field(description="Only applications with this sync status."),
        ] = None,
    ) -> dict[str, Any]:
        """List applications with their health and sync status."""
        with self.store.read() as session:
            if project is not None:
                project = _project(session, project).name
            applications = [
                _summary(application)
                for application in session.all(Application)
                if project in (None, application.project)
                and health in (None, application.health)
                and sync_status in (None, application.sync_status)
            ]
        return {"total": len(applications), "applications": applications}

    def get_application(self, application: ApplicationArgument) -> dict[str, Any]:
        """Show one application: status, health, sync status, image, revision and what is related to it."""
        with self.store.read() as session:
            found = _application(session, application)
        details = {
            **_summary(found),
            "problem": found.running.problem,
            "namespace": found.namespace,
            "source": f"{OWNER}/gitops, {found.path}",
            "live_revision": _revision(found.running),
            "target_revision": _revision(found.target) if found.sync_status == "OutOfSync" else None,
            "last_deployed": found.history[-1].deployed_at,
            "url": found.url,
            "related": found.related.listed() or None,
        }
        return {key: value for key, value in details.items() if value is not None}

    def get_application_history(self, application: ApplicationArgument) -> dict[str, Any]:
        """List the deployments of an application, the latest first."""
        with self.store.read() as session:
            found = _application(session, application)
            names = full_names(session)
            now = session.organization().now
        images = {revision.revision: revision.image for revision in found.revisions}
        deployments = [
            {
                "id": deployment.id,
                "revision": deployment.revision,
                "image": images[deployment.revision],
                "deployed_at": deployment.deployed_at,
                "initiated_by": names[deployment.initiated_by],
            }
            for deployment in reversed(found.history)
        ]
        return {"application": found.name, "as_of": now, "deployments": deployments}

    def list_projects(self) -> dict[str, Any]:
        """List the Argo CD projects and how many applications each has."""
        with self.store.read() as session:
            applications = session.all(Application)
            projects = session.all(ApplicationProject)
        return {
            "total": len(projects),
            "projects": [
                {
                    "name": project.name,
                    "description": project.description,
                    "applications": sum(application.project == project.name for application in applications),
                }
                for project in projects
            ],
        }

    def create_application(
        self,
        application: Annotated[
            str, Field(description="Name of the new application: lower-case letters, digits and `-`.")
        ],
        project: Annotated[str, Field(description="Project of the application, for example shop.")],
        namespace: Annotated[
            str | None, Field(description="Namespace to deploy to; the name of the project if left out.")
        ] = None,
        image: Annotated[
            str | None, Field(description="Image to run; the first version of the application if left out.")
        ] = None,
    ) -> dict[str, Any]:
        """Create an application in Argo CD and deploy it for the first time."""
        name = application.strip()
        if not _LABEL.fullmatch(name):
            raise ToolError(f"{application!r} is no name for an application. {_LABEL_IN_WORDS}")
        if namespace is not None and not _LABEL.fullmatch(namespace.strip()):
            raise ToolError(f"{namespace!r} is no name for a namespace. {_LABEL_IN_WORDS}")
        with self.store.write() as session:
            if (existing := session.find(Application, name)) is not None:
                raise ToolError(f"An application {existing.name} exists already: {existing.url}. Choose another name.")
            of_project = _project(session, project).name
            created = _first_deployment(session, name, of_project, namespace, image)
            session.put(created)
        return {"message": f"Created {name} in the project {of_project}.", **_outcome(created), "url": created.url}

    def sync_application(self, application: ApplicationArgument) -> dict[str, Any]:
        """Sync an application: deploy what Git asks for."""
        with self.store.write() as session:
            found = _application(session, application)
            if found.sync_status == "Synced":
                return {"message": f"{found.name} is in sync already; nothing was deployed.", **_outcome(found)}
            organization = session.organization()
            found = found.deployed(found.target.revision, session.advance_clock(), organization.me)
            session.put(found)
        return {"message": f"Synced {found.name}.", **_outcome(found)}

    def rollback_application(
        self,
        application: ApplicationArgument,
        revision: Annotated[
            str | None,
            Field(
                description="Revision or deployment id to go back to; the deployment before the live one if left out."
            ),
        ] = None,
    ) -> dict[str, Any]:
        """Roll an application back to an earlier deployment. It is then out of sync until the next sync."""
        with self.store.write() as session:
            found = _application(session, application)
            target = _earlier_revision(found, revision)
            organization = session.organization()
            found = found.deployed(target, session.advance_clock(), organization.me)
            session.put(found)
        return {"message": f"Rolled {found.name} back to revision {target}.", **_outcome(found)}


def _first_deployment(
    session: SandboxSession, name: str, project: str, namespace: str | None, image: str | None
) -> Application:
    """A new application with its first revision running."""
    now, me = session.advance_clock(), session.organization().me
    commit = hashlib.sha256(f"{name} {now.isoformat()}".encode()).hexdigest()[:7]
    revision = Revision(
        revision=commit,
        image=(image or "").strip() or f"registry.acme.example/{name}:0.1.0",
        author=me,
        message=f"{name}: first deployment",
    )
    return Application(
        name=name,
        project=project,
        namespace=(namespace or project).strip(),
        path=f"{project}/{name}",
        live=commit,
        revisions=(revision,),
        history=(Deployment(id=1, revision=commit, deployed_at=now, initiated_by=me),),
    )


def _application(session: SandboxSession, name: str) -> Application:
    found = session.find(Application, name.strip())
    if found is None:
        raise unknown("application", name, (application.name for application in session.all(Application)))
    return found


def _project(session: SandboxSession, name: str) -> ApplicationProject:
    found = session.find(ApplicationProject, name.strip())
    if found is None:
        raise unknown("project", name, (project.name for project in session.all(ApplicationProject)))
    return found


def _earlier_revision(application: Application, wanted: str | None) -> str:
    deployed = {deployment.revision for deployment in application.history}
    by_id = {str(deployment.id): deployment.revision for deployment in application.history}
    if wanted is not None:
        revision = by_id.get(wanted, wanted)
        if revision not in deployed:
            raise unknown(f"deployed revision of {application.name}", wanted, sorted(deployed))
        return revision
    for deployment in reversed(application.history):
        if deployment.revision != application.live:
            return deployment.revision
    raise ToolError(f"{application.name} has no earlier deployment to go back to.")


def _summary(application: Application) -> dict[str, Any]:
    return {
        "name": application.name,
        "project": application.project,
        "health": application.health,
        "sync_status": application.sync_status,
        "image": application.running.image,
    }


def _outcome(application: Application) -> dict[str, Any]:
    outcome = {
        "application": application.name,
        "sync_status": application.sync_status,
        "health": application.health,
        "image": application.running.image,
        "revision": application.live,
    }
    if application.running.problem:
        outcome["problem"] = application.running.problem
    return outcome


def _revision(revision: Revision) -> dict[str, Any]:
    return revision.model_dump(exclude={"problem"}, exclude_none=True)
