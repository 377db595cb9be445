"""How we find the API server and authenticate: as the pod's service account, or by a kubeconfig, as kubectl does."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import getproxies

import yaml
from kubernetes.client.configuration import Configuration
from kubernetes.config import ConfigException, incluster_config, load_incluster_config, load_kube_config
from urllib3 import Retry

from .errors import KubeError

# ansible-operator sets KUBECONFIG to its own caching proxy; `make run` names the user's kubeconfig here.
KUBECONFIG = "ETCDOPS_KUBECONFIG"

_LOAD_SECONDS = 60.0  # an exec plugin may have to log in; it must not hold a reconcile for ever
# Only a read is sent a second time: nobody knows whether a write that got no answer was done.
_RETRIES = Retry(total=None, connect=0, read=1, other=0, status=0, redirect=False, allowed_methods=["GET"])


def load() -> Configuration:
    """The settings of a client: server, trusted CA, credentials, proxy. Read anew each time."""
    configuration = Configuration(retries=_RETRIES)
    chosen = os.environ.get(KUBECONFIG)
    if not chosen and _in_pod():
        try:
            load_incluster_config(client_configuration=configuration)
        except (ConfigException, OSError) as error:
            raise KubeError(0, f"The pod's service account cannot be used: {error}") from error
        return configuration
    paths = chosen or os.environ.get("KUBECONFIG") or "~/.kube/config"
    _in_time(lambda: _load_kubeconfig(paths, configuration), f"Reading the kubeconfig {paths}")
    return configuration


def _in_pod() -> bool:
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and Path(incluster_config.SERVICE_TOKEN_FILENAME).exists()


def _load_kubeconfig(paths: str, configuration: Configuration) -> None:
    try:
        with _logged_errors() as logged:
            load_kube_config(paths, context=_current_context(paths), client_configuration=configuration)
    except (ConfigException, OSError, yaml.YAMLError) as error:
        raise KubeError(0, f"No Kubernetes cluster: {paths}: {error}. Set KUBECONFIG to a valid kubeconfig.") from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise KubeError(0, f"No Kubernetes cluster: {paths} is not a kubeconfig ({error!r}).") from error
    if logged and not configuration.api_key and not configuration.cert_file:
        raise KubeError(0, f"No credentials for the Kubernetes API: {logged[-1]}. Check the current user in {paths}.")
    if configuration.proxy not in getproxies().values():  # NO_PROXY is about proxies from the environment
        configuration.no_proxy = None


def _current_context(paths: str) -> str | None:
    """Of several files the first that names a context decides, as for kubectl; the library would take the last."""
    files = [Path(path).expanduser() for path in paths.split(os.pathsep) if path]
    if len(files) < 2:
        return None
    found = (yaml.safe_load(file.read_text()) for file in files if file.exists())
    return next((each["current-context"] for each in found if each and each.get("current-context")), None)


@contextmanager
def _logged_errors() -> Iterator[list[str]]:
    """What is logged meanwhile. The library logs that an exec plugin failed, and goes on without credentials."""
    messages: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    try:
        yield messages
    finally:
        logging.getLogger().removeHandler(handler)


def _in_time(work: Callable[[], None], what: str) -> None:
    """Run `work` in a thread that is abandoned when it takes too long: the library waits for exec plugins for ever."""
    raised: list[Any] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(_LOAD_SECONDS)
    if thread.is_alive():
        raise KubeError(0, f"{what}: no end after {_LOAD_SECONDS:.0f} s. Check the current user's exec plugin.")
    if raised:
        raise raised[0]
