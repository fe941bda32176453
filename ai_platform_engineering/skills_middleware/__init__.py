"""Skills: instructions for recurring work, which the supervisor and its agents read when they need them.

`sources/` load skills, `catalog.py` merges them for each caller, `rest/` serves them over HTTP. How skills are offered
to a model is not here but in `graphs/skills.py`.
"""
