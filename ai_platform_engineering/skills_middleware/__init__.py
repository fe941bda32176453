"""Skills: instructions for recurring work that the supervisor and its agents read when they need them.

Sources load skills, the catalog merges them for each caller, the router serves them over REST. What a model sees of
skills is in `graphs/skills.py`.
"""
