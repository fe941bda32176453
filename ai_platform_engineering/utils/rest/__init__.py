"""What every REST API of the product shares: lazy loading, problem JSON, the page that describes it, body limits.

`lazy` and `body_limit` import no FastAPI. Routes and views belong to the packages that have an API.
"""
