"""PagerDuty in the sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from ai_platform_engineering.mcp.tool_server import ToolError, ToolServer
from ai_platform_engineering.sandbox.records import Employee, Incident, IncidentStatus, LogEntry, Schedule, Service
from ai_platform_engineering.sandbox.store import SandboxSession, SandboxStore
from ai_platform_engineering.sandbox.tools import NonEmptyText, choice, full_names, new_server, unknown
from ai_platform_engineering.settings import Settings

StatusFilter = Literal["open", "triggered", "acknowledged", "resolved", "all"]
IncidentId = Annotated[str, Field(description="Id of the incident, for example P4711.")]


def server(settings: Settings) -> ToolServer:
    """The MCP server over the sandbox file of these settings."""
    pagerduty = PagerDuty(SandboxStore.of(settings))
    return new_server(
        "pagerduty",
        reads=[
            pagerduty.list_incidents,
            pagerduty.get_incident,
            pagerduty.list_on_calls,
            pagerduty.list_services,
        ],
        writes=[
            pagerduty.acknowledge_incident,
            pagerduty.escalate_incident,
            pagerduty.add_note,
            pagerduty.resolve_incident,
        ],
    )


@dataclass(frozen=True)
class PagerDuty:
    store: SandboxStore

    def list_incidents(
        self,
        status: Annotated[
            StatusFilter,
            choice(*get_args(StatusFilter)),
            Field(description="Only incidents with this status; `open` is triggered and acknowledged."),
        ] = "open",
        service: Annotated[str | None, Field(description="Only incidents of the service with this name.")] = None,
    ) -> dict[str, Any]:
        """List PagerDuty incidents, the latest first."""
        with self.store.read() as session:
            name = None if service is None else _service(session, service).name
            names = full_names(session)
            now = session.organization().now
            incidents = [
                incident
                for incident in session.all(Incident)
                if _has_status(incident, status) and name in (None, incident.service)
            ]
        incidents.sort(key=lambda incident: incident.created, reverse=True)
        return {
            "total": len(incidents),
            "as_of": now,
            "incidents": [_summary(incident, names) for incident in incidents],
        }

    def get_incident(self, incident_id: IncidentId) -> dict[str, Any]:
        """Show one PagerDuty incident with its log and what is related to it."""
        with self.store.read() as session:
            incident = _incident(session, incident_id)
            names = full_names(session)
        details = {
            **_summary(incident, names),
            "log": [entry.model_dump() for entry in incident.log],
            "related": incident.related.listed(),
        }
        return {key: value for key, value in details.items() if value}

    def list_on_calls(
        self,
        schedule: Annotated[
            str | None, Field(description="Only the schedule with this name or of this service.")
        ] = None,
    ) -> dict[str, Any]:
        """List who is on call now, who is next and who it escalates to, by schedule."""
        with self.store.read() as session:
            schedules = session.all(Schedule) if schedule is None else [_schedule(session, schedule)]
            people = {person.login: person for person in session.all(Employee)}
            services = session.all(Service)
            now = session.organization().now
        return {
            "total": len(schedules),
            "as_of": now,
            "on_calls": [
                {
                    "schedule": entry.name,
                    "on_call": people[entry.on_call].name,
                    "email": people[entry.on_call].email,
                    "next": people[entry.next].name,
                    "escalation": people[entry.escalation].name,
                    "until": entry.end,
                    "services": [service.name for service in services if service.schedule == entry.name],
                }
                for entry in schedules
            ],
        }

    def list_services(self) -> dict[str, Any]:
        """List PagerDuty services with their schedule and their open incidents."""
        with self.store.read() as session:
            services = session.all(Service)
            incidents = [incident for incident in session.all(Incident) if incident.status != "resolved"]
        return {
            "total": len(services),
            "services": [
                {
                    **service.model_dump(),
                    "open_incidents": [incident.key for incident in incidents if incident.service == service.name],
                }
                for service in services
            ],
        }

    def acknowledge_incident(self, incident_id: IncidentId) -> dict[str, Any]:
        """Acknowledge a PagerDuty incident: someone is working on it."""
        with self.store.write() as session:
            incident = _incident(session, incident_id)
            if incident.status != "triggered":
                raise ToolError(f"{incident.key} is {incident.status} already; only a triggered one is acknowledged.")
            return _moved(session, incident, "acknowledged")

    def escalate_incident(
        self,
        incident_id: IncidentId,
        note: Annotated[str, Field(description="Why it is escalated.")] = "",
    ) -> dict[str, Any]:
        """Escalate a PagerDuty incident: hand it to the person its schedule escalates to."""
        with self.store.write() as session:
            incident = _incident(session, incident_id)
            names = full_names(session)
            if incident.status == "resolved":
                raise ToolError(f"{incident.key} is resolved already; only an open incident is escalated.")
            contact = _schedule(session, incident.service).escalation
            if incident.assignee == contact:
                raise ToolError(
                    f"{incident.key} is with {names[contact]} already, the last level of escalation. "
                    "Add a note instead."
                )
            text = (
                f"Escalated from {names[incident.assignee]} to {names[contact]} by {names[session.organization().me]}."
            )
            escalated = _noted(session, incident.replace(assignee=contact), text, note.strip())
        return {"message": f"{escalated.key} is with {names[contact]} now.", **_summary(escalated, names)}

    def add_note(
        self, incident_id: IncidentId, note: Annotated[NonEmptyText, Field(description="Text of the note.")]
    ) -> dict[str, Any]:
        """Add a note to the log of a PagerDuty incident."""
        with self.store.write() as session:
            names = full_names(session)
            incident = _incident(session, incident_id)
            noted = _noted(session, incident, f"Note by {names[session.organization().me]}:", note)
        return {"message": f"Noted on {noted.key}.", **_summary(noted, names)}

    def resolve_incident(
        self,
        incident_id: IncidentId,
        note: Annotated[str, Field(description="What solved it.")] = "",
    ) -> dict[str, Any]:
        """Resolve a PagerDuty incident: it is over."""
        with self.store.write() as session:
            incident = _incident(session, incident_id)
            if incident.status == "resolved":
                raise ToolError(f"{incident.key} is resolved already.")
            return _moved(session, incident, "resolved", note.strip())


def _moved(session: SandboxSession, incident: Incident, status: IncidentStatus, note: str = "") -> dict[str, Any]:
    names = full_names(session)
    text = f"{status.capitalize()} by {names[session.organization().me]}."
    moved = _noted(session, incident.replace(status=status), text, note)
    return {"message": f"{moved.key} is {status}.", **_summary(moved, names)}


def _noted(session: SandboxSession, incident: Incident, text: str, note: str = "") -> Incident:
    """Store the incident with one more entry in its log."""
    entry = LogEntry(at=session.advance_clock(), text=f"{text} {note}" if note else text)
    noted = incident.replace(log=(*incident.log, entry))
    session.put(noted)
    return noted


def _incident(session: SandboxSession, incident_id: str) -> Incident:
    number = incident_id.strip().lstrip("#").upper().removeprefix("P")
    found = session.find(Incident, f"P{number}")
    if found is None:
        raise unknown("incident", incident_id, (incident.key for incident in session.all(Incident)))
    return found


def _service(session: SandboxSession, name: str) -> Service:
    found = session.find(Service, name.strip())
    if found is None:
        raise unknown("service", name, (service.name for service in session.all(Service)))
    return found


def _schedule(session: SandboxSession, name: str) -> Schedule:
    """The schedule for `payments`, `Payments on-call` or the name of a service."""
    wanted = name.strip()
    schedules = session.all(Schedule)
    for schedule in schedules:
        if wanted.casefold() in (schedule.name.casefold(), schedule.name.casefold().removesuffix(" on-call")):
            return schedule
    service = session.find(Service, wanted)
    found = None if service is None else session.find(Schedule, service.schedule)
    if found is None:
        raise unknown("schedule", name, (schedule.name for schedule in schedules))
    return found


def _has_status(incident: Incident, status: StatusFilter) -> bool:
    match status:
        case "all":
            return True
        case "open":
            return incident.status != "resolved"
        case _:
            return incident.status == status


def _summary(incident: Incident, names: dict[str | None, str | None]) -> dict[str, Any]:
    return {
        "id": incident.key,
        "title": incident.title,
        "service": incident.service,
        "status": incident.status,
        "urgency": incident.urgency,
        "assignee": names[incident.assignee],
        "created": incident.created,
        "url": incident.url,
    }
