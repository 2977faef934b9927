"""What every runtime offers to programs outside: its agents, their sessions and its jobs, as remote methods."""

from __future__ import annotations

from greenroom.actors.agent import Agent, AgentManager
from greenroom.actors.job import Job, JobManager
from greenroom.actors.remote import RemoteServices
from greenroom.actors.services.agents import AgentService
from greenroom.actors.services.jobs import JobService
from greenroom.actors.services.sessions import SessionService
from greenroom.actors.session import SessionManager
from greenroom.runtime.bus import Bus

__all__ = ["offer_services"]


def offer_services(
    remote: RemoteServices, agents: AgentManager, sessions: SessionManager, jobs: JobManager, bus: Bus
) -> None:
    """Offer what this runtime has. An agent at its top, and a job, are told by their ids from then on."""
    known = JobService(jobs)
    remote.lookups.register(Agent, agents.agent)
    remote.lookups.register(Job, known.find)
    remote.add("agent", AgentService(agents))
    remote.add("session", SessionService(sessions, bus))
    remote.add("job", known)
