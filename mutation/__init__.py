"""Mutation testing: which changes of the code no test notices.

`packages.py` has the packages and the tests that guard each, `__main__.py` runs mutmut and reports the survivors.
"""
