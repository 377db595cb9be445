"""What the public etcd modules share: the connection options, and how a failure is returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from .connection import Connection
from .endpoint import Tls
from .errors import INVALID_ARGUMENT, EtcdError
from .types import Member

Result = dict[str, Any]

# Documented in plugins/doc_fragments/etcd.py.
_CONNECTION = {
    "endpoints": {"type": "list", "elements": "str", "default": ["http://127.0.0.1:2379"]},
    "ca_cert": {"type": "path"},
    "client_cert": {"type": "path"},
    "client_key": {"type": "path", "no_log": False},  # a path is not a secret
    "username": {"type": "str"},
    "password": {"type": "str", "no_log": True},
    "timeout": {"type": "float", "default": 5.0},
}


def make_module(options: dict[str, Any], **settings: Any) -> AnsibleModule:
    """An AnsibleModule with these options and those of the connection."""
    return AnsibleModule(
        argument_spec={**_CONNECTION, **options},
        required_together=[("client_cert", "client_key"), ("username", "password")],
        supports_check_mode=True,
        **settings,
    )


def run(module: AnsibleModule, work: Callable[[Connection], Result]) -> None:
    """Do the work of a module and end it, with its result or with etcd's refusal."""
    connection = None
    try:
        connection = connection_of(module.params)
        result = work(connection)
    except EtcdError as error:
        module.fail_json(msg=str(error), code=error.code)
    finally:
        if connection is not None:
            connection.close()
    module.exit_json(**result)


def member_result(member: Member) -> Result:
    """A member as modules return it; IDs in hexadecimal, as etcdctl writes them."""
    return {
        "id": f"{member.id:x}" if member.id else None,  # None: not added yet, in check mode
        "name": member.name,
        "peer_urls": sorted(member.peer_urls),
        "client_urls": sorted(member.client_urls),
        "learner": member.is_learner,
    }


def connection_of(params: dict[str, Any]) -> Connection:
    """The connection that a module's options describe."""
    if not params["endpoints"]:
        raise EtcdError(INVALID_ARGUMENT, "endpoints is empty; give at least one client URL of the cluster")
    if params["timeout"] <= 0:
        raise EtcdError(INVALID_ARGUMENT, f"timeout is {params['timeout']:g}; it must be more than 0 seconds")
    tls = Tls(params["ca_cert"], params["client_cert"], params["client_key"])
    _ = tls.context  # an unusable file is reported once, not per endpoint
    return Connection(tls, params["timeout"], params["username"], params["password"])
