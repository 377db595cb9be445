"""Options of the modules that keep and fetch snapshots."""

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
      - The access key. If not set, the environment variable E(AWS_ACCESS_KEY_ID) is used, then all that AWS' own
        programs would use.
    type: str
  s3_secret_key:
    description:
      - Its secret. If not set, the environment variable E(AWS_SECRET_ACCESS_KEY) is used.
    type: str
  report:
    description:
      - A file that gets the result as JSON too, well or not. For the termination message of a Kubernetes Job.
    type: path
attributes:
  platform:
    support: full
    platforms: posix
    description: Where it runs.
"""

    # Those that fetch one.
    FETCH = r"""
options:
  sha256:
    description:
      - What M(etcdops.etcd.etcd_snapshot) returned as RV(etcdops.etcd.etcd_snapshot#module:sha256). If given, it must
        be that.
    type: str
  identity_file:
    description:
      - The file with age's private key, if it is encrypted.
    type: path
requirements:
  - botocore, for S3 without credentials of its own in the options
  - zstandard, for compressed snapshots
  - pyrage, for encrypted snapshots
"""
