"""Timelines: when the threads of a launch ran, waited and copied, as a page, a picture, or trace events."""

from oxidecopy.trace.follow import Trace as Trace
from oxidecopy.trace.follow import shown as shown
from oxidecopy.trace.follow import trace as trace

__all__ = ["Trace", "shown", "trace"]
