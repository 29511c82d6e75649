"""What a tensor map may be: the driver's parameters as data, its rules as data, and a verdict over both. No GPU is needed."""
