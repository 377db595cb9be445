"""Options of the modules that store, fetch and restore snapshots."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  s3_endpoint:
    description:
      - The URL of an S3-compatible store. Without it, AWS.
      - If not set, the environment variable E(AWS_ENDPOINT_URL_S3) is used.
    type: str
  s3_region:
    description:
      - The store's region. If not set, the environment variable E(AWS_REGION) is used, then V(us-east-1).
    type: str
  s3_path_style:
    description:
      - Whether the bucket's name is part of the path and not of the host name. Most stores other than AWS want it.
    type: bool
    default: false
  s3_ca_cert:
    description:
      - PEM file with the CA that signed the store's certificate. If not set, the environment variable
        E(AWS_CA_BUNDLE) is used, then the system's CAs.
    type: path
  s3_access_key:
    description:
      - The access key. If not set, the environment variable E(AWS_ACCESS_KEY_ID) is used, then a workload identity
        that the environment names (IRSA, EKS Pod Identity, ECS).
    type: str
  s3_secret_key:
    description:
      - The secret of the access key. If not set, the environment variable E(AWS_SECRET_ACCESS_KEY) is used.
    type: str
  s3_node_credentials:
    description:
      - Whether to use the credentials that the machine itself offers (EC2 instance metadata) when there are no others.
      - If not set, the environment variable E(SNAPSHOT_S3_NODE_CREDENTIALS) is used.
    type: bool
    default: false
    version_added: "0.2.0"
  report:
    description:
      - A file that also gets the result as JSON, of a success or a failure. For the termination message of a Kubernetes
        Job.
    type: path
attributes:
  platform:
    support: full
    platforms: posix
    description: Where it runs.
"""

    # Modules that fetch a snapshot.
    FETCH = r"""
options:
  sha256:
    description:
      - The expected sha256 of what is stored, as M(etcdops.etcd.etcd_snapshot) returned it. The module fails if it
        differs.
    type: str
  identity_file:
    description:
      - A file with the age private key (C(AGE-SECRET-KEY-1…)). Required if the snapshot is encrypted.
    type: path
  max_size:
    description:
      - How many bytes the plain snapshot may have, decrypted and decompressed. The module fails when it has more, or
        more than 80 % of the free space where it is written.
    type: int
    version_added: "0.2.0"
requirements:
  - obstore, for object stores
  - zstandard, for compressed snapshots
  - pyrage, for encrypted snapshots
"""
