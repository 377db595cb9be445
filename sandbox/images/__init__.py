"""Container images, made without a container engine and without a registry."""
