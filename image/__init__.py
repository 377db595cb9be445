"""The operator's image, built without a container engine and without a registry."""
