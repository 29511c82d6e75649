"""Random programs, whole and broken by one edit, on which verifier, simulator and GPU must agree: `oxidecopy conformance fuzz`."""
