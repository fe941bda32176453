"""Parts shared by the REST APIs: problem JSON, a page with the API's description, body limits, apps built on first use.

`asgi` imports no FastAPI. Routes and views belong to the packages that have an API.
"""
