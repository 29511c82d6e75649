"""Pipelines as operators of other frameworks. Each module imports its framework, which the package does not depend on."""
