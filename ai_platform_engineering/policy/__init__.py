"""The policy: which principals may see and use which agents, tools, workflows, skills and knowledge, which tool calls
need an approval, and from which people.

`file.py` reads `policy.yaml`, `decisions.py` decides. Pure, except for reading the file. Decisions are enforced where
the calls are: in `graphs/`, in the supervisor and in the REST routes.
"""
