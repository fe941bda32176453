"""The web page: its sources in TypeScript (`web/`), which `make setup` builds into `built/`, and the routes that serve
it. The page is an A2A client like any other."""
