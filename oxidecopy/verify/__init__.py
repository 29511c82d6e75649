"""The whole-program verifier: `verify` proves a program for one launch shape, or refuses it with every violation."""

from oxidecopy.verify.report import Report as Report
from oxidecopy.verify.verifier import inspect as inspect
from oxidecopy.verify.verifier import verify as verify

__all__ = ["Report", "inspect", "verify"]
