"""Forms in Slack: how one is shown as blocks or in a modal, and what Slack sends back as the answer it is.

Pure functions over values. Whether a value fits is decided by `forms`; who sends and takes all this, elsewhere.
"""
