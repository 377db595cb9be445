"""What the modules for Kubernetes have in common."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
requirements:
  - "kubernetes (Python package)"
attributes:
  check_mode:
    description: Can run in check_mode and tell what it would do without changing anything.
    support: full
  diff_mode:
    description: Returns details on what has changed in diff mode.
    support: none
"""

    # Those that work on one EtcdCluster.
    ETCDCLUSTER = r"""
options:
  namespace:
    description: The namespace of the EtcdCluster.
    type: str
    required: true
  name:
    description: Its name.
    type: str
    required: true
notes:
  - Meant for the operator. It needs a Kubernetes cluster with the custom resource.
"""

    # Those that decide for one object of a kind of ours.
    PLAN = r"""
options:
  namespace:
    description: The namespace of the object.
    type: str
    required: true
  name:
    description: Its name.
    type: str
    required: true
notes:
  - Meant for the operator. It needs a Kubernetes cluster with the custom resources.
"""
