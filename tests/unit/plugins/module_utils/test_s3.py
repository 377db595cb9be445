from __future__ import annotations

from datetime import UTC, datetime

from ansible_collections.etcdops.etcd.plugins.module_utils.s3 import Credentials, signed


def test_a_signature_is_the_one_of_aws_own_example() -> None:
    """GET Bucket Lifecycle of https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html"""
    credentials = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    request = ("GET", "examplebucket.s3.amazonaws.com", "/", "lifecycle=")
    nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    headers = signed(credentials, "us-east-1", request, nothing, datetime(2013, 5, 24, tzinfo=UTC))
    signature = "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
    assert headers["Authorization"].endswith(f"Signature={signature}")
    assert credentials.secret_key not in repr(credentials)
