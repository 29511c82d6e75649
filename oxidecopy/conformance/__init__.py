"""The same programs on two engines, compared byte for byte: what `oxidecopy conformance` runs."""
