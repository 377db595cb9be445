"""What the modules that store, fetch and restore snapshots share: options, etcdutl, reports."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule, env_fallback

from ..etcd.module import Result
from . import codec
from .errors import StoreError, UnsureError, WrongKeyError
from .s3 import Settings

# Documented in plugins/doc_fragments/snapshot.py.
OPTIONS: dict[str, Any] = {
    "s3_endpoint": {"type": "str", "fallback": (env_fallback, ["AWS_ENDPOINT_URL_S3"])},
    "s3_region": {"type": "str", "fallback": (env_fallback, ["AWS_REGION"])},
    "s3_path_style": {"type": "bool", "default": False},
    "s3_ca_cert": {"type": "path", "fallback": (env_fallback, ["AWS_CA_BUNDLE"])},
    "s3_access_key": {"type": "str", "no_log": True, "fallback": (env_fallback, ["AWS_ACCESS_KEY_ID"])},
    "s3_secret_key": {"type": "str", "no_log": True, "fallback": (env_fallback, ["AWS_SECRET_ACCESS_KEY"])},
    "s3_node_credentials": {
        "type": "bool",
        "default": False,
        "fallback": (env_fallback, ["SNAPSHOT_S3_NODE_CREDENTIALS"]),
    },
    "report": {"type": "path"},
}
FETCH_OPTIONS: dict[str, Any] = {
    "sha256": {"type": "str"},
    "identity_file": {"type": "path"},
    "max_size": {"type": "int"},
}
_REPORT_LIMIT = 3000  # Kubernetes keeps 4096 bytes of a termination message


def s3_settings(params: dict[str, Any]) -> Settings:
    return Settings(
        endpoint=params["s3_endpoint"],
        region=params["s3_region"],
        path_style=params["s3_path_style"],
        ca=params["s3_ca_cert"],
        access_key=params["s3_access_key"],
        secret_key=params["s3_secret_key"],
        node_credentials=params["s3_node_credentials"],
    )


def identities_in(path: str | None) -> list[str]:
    """The private keys in a file of age keys."""
    return _keys_in(path, "age's private keys (AGE-SECRET-KEY-1…)", codec.recipients_of)


def recipients_in(path: str | None) -> list[str]:
    """The public keys in a file of age keys."""
    return _keys_in(path, "age's public keys (age1…)", codec.check_recipients)


def _keys_in(path: str | None, what: str, check: Callable[[list[str]], Any]) -> list[str]:
    """The keys in a file, one in a line; comments are skipped. An error names the file, and no key."""
    if not path:
        return []
    try:
        lines = Path(path).read_text().splitlines()
    except FileNotFoundError as error:
        raise StoreError(f"{path} does not exist; it must have {what}, one in a line") from error
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{path} can't be read: {error}") from error
    found = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not found:
        raise StoreError(f"{path} is empty; it must have {what}, one in a line")
    try:
        check(found)
    except StoreError as error:
        raise StoreError(f"{path} must have {what}, one in a line: {error}") from error
    return found


def snapshot_status(etcdutl: str, path: str) -> Result:
    """The result of `etcdutl snapshot status` for a plain snapshot."""
    code, output, errors = _run([etcdutl, "snapshot", "status", path, "--write-out=json"])
    if code != 0:
        raise StoreError(f"etcdutl refuses the snapshot: {last_line(errors or output)}")
    return status_result(output)


def status_result(output: str) -> Result:
    """The output of `etcdutl snapshot status --write-out=json`, as modules return it."""
    status = json.loads(output)
    return {
        "hash": f"{status['hash']:x}",
        "revision": status["revision"],
        "total_keys": status["totalKey"],
        "storage_version": status.get("version", ""),
    }


def restore_command(etcdutl: str, snapshot: str, options: dict[str, Any]) -> list[str]:
    """The command that makes a member's data from a snapshot."""
    flags = [f"--{name}={value}" for name, value in options.items()]
    return [etcdutl, "snapshot", "restore", snapshot, *flags]


def run_etcdutl(command: Sequence[str]) -> None:
    code, output, errors = _run(command)
    if code != 0:
        raise StoreError(f"etcdutl could not restore: {last_line(errors or output)}")


def last_line(text: str) -> str:
    """The last line of a program's output, which usually says why it failed."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:500] if lines else "it printed nothing"


def end(module: AnsibleModule, work: Callable[[], Result], errors: tuple[type[Exception], ...]) -> None:
    """Do the work, write the report, and exit the module."""
    try:
        result = work()
    except errors as error:
        told = str(error)
        if isinstance(error, WrongKeyError):
            told = f"{told} See {module.params['identity_file']}"
        _report(module, {"error": told[:_REPORT_LIMIT], "unsure": isinstance(error, UnsureError)})
        module.fail_json(msg=told)
    except Exception as error:  # a bug, but the Job's report must show it
        _report(module, {"error": f"{type(error).__name__}: {error}"[:_REPORT_LIMIT]})
        raise
    _report(module, result)
    module.exit_json(**result)


def _report(module: AnsibleModule, result: Result) -> None:
    if module.params["report"] and not module.check_mode:
        Path(module.params["report"]).write_text(json.dumps(result))


def _run(command: Sequence[str]) -> tuple[int, str, str]:
    try:
        done = subprocess.run(list(command), capture_output=True, text=True, check=False)
    except OSError as error:
        raise StoreError(f"{command[0]} can't be run: {error.strerror}; is etcdutl installed here?") from error
    return done.returncode, done.stdout, done.stderr
