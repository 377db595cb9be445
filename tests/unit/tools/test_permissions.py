from __future__ import annotations

from tools import permissions


def _request(verb: str, resource: str, code: int = 200, subresource: str | None = None) -> dict[str, object]:
    target = {"resource": resource, "apiGroup": "apps"} | ({"subresource": subresource} if subresource else {})
    decision = {"authorization.k8s.io/decision": "forbid" if code == 403 else "allow"}
    return {
        "verb": verb,
        "objectRef": target,
        "responseStatus": {"code": code},
        "requestURI": f"/apis/apps/{resource}",
        "annotations": decision,
    }


def test_used_permissions_are_read_from_the_audit_log() -> None:
    audit = [
        _request("get", "statefulsets"),
        _request("patch", "statefulsets", 201),
        _request("patch", "x", 200, "status"),
    ]
    assert permissions.used(audit) == {
        ("apps", "statefulsets", "get"),
        ("apps", "statefulsets", "patch"),
        ("apps", "statefulsets", "create"),
        ("apps", "x/status", "patch"),
    }


def test_granted_and_refused_permissions_are_listed() -> None:
    role = {"rules": [{"apiGroups": ["apps"], "resources": ["statefulsets"], "verbs": ["get", "delete"]}]}
    assert permissions.granted([role]) == {("apps", "statefulsets", "get"), ("apps", "statefulsets", "delete")}
    assert permissions.refused([_request("get", "secrets", 403), _request("get", "pods")]) == ["get /apis/apps/secrets"]
