"""Where the product reaches into private parts of the provider packages, each with a test that an upgrade breaks."""
