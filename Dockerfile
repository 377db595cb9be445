# The operator's image: `docker build .`, or `make image` without a container engine and a registry.
ARG BASE=quay.io/operator-framework/ansible-operator:v1.42.0
FROM ${BASE}

LABEL org.opencontainers.image.title="etcdops" \
      org.opencontainers.image.description="A Kubernetes operator for etcd" \
      org.opencontainers.image.licenses="Apache-2.0"

USER 0

# The tested versions. The base that `make image` builds has them already, so nothing is downloaded.
COPY requirements/runtime.txt /opt/ansible/requirements.txt
RUN python3 -m pip install --quiet --no-cache-dir --root-user-action=ignore --require-hashes \
      -r /opt/ansible/requirements.txt

# The roles that watches.yaml names and the collection are the same files.
ARG COLLECTION=/opt/ansible/collections/ansible_collections/etcdops/etcd
COPY galaxy.yml LICENSE ${COLLECTION}/
COPY meta ${COLLECTION}/meta
COPY plugins ${COLLECTION}/plugins
COPY roles ${COLLECTION}/roles
COPY playbooks ${COLLECTION}/playbooks
COPY warm_runner /opt/ansible/warm_runner
COPY watches.yaml /opt/ansible/
RUN ln -s ${COLLECTION}/roles ${COLLECTION}/playbooks /opt/ansible/ \
 && chmod -R a+rX,go-w /opt/ansible \
 && python3 -m compileall -q --invalidation-mode unchecked-hash /opt/ansible/warm_runner ${COLLECTION}

# The root file system is read-only in the pod; only /tmp is writable.
ENV HOME=/tmp \
    LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1 \
    ANSIBLE_HOME=/tmp/.ansible \
    ANSIBLE_LOCAL_TEMP=/tmp/.ansible/tmp \
    ANSIBLE_REMOTE_TEMP=/tmp/.ansible/tmp \
    ANSIBLE_COLLECTIONS_PATH=/opt/ansible/collections \
    ANSIBLE_ROLES_PATH=/opt/ansible/roles

# Fast and quiet: no facts, no temporary files for modules, one inventory format.
ENV ANSIBLE_GATHERING=explicit \
    ANSIBLE_PIPELINING=true \
    ANSIBLE_INVENTORY_ENABLED=ini \
    ANSIBLE_DISPLAY_OK_HOSTS=false \
    ANSIBLE_DISPLAY_SKIPPED_HOSTS=false \
    ANSIBLE_LOCALHOST_WARNING=false \
    ANSIBLE_NOCOLOR=true

# A resident Python runs what ansible-operator starts (docs/warm-runner.md). Without these lines everything works, slower.
ENV PATH=/opt/ansible/warm_runner/bin:${PATH} \
    ANSIBLE_ACTION_PLUGINS=/opt/ansible/warm_runner/action \
    WARM_RUNNER_SERVERS=4 \
    WARM_RUNNER_FOLDERS=/tmp/ansible-operator/runner/*/*/*/*/* \
    WARM_RUNNER_ARTIFACTS=3 \
    WARM_RUNNER_PRELOAD=ansible_collections.etcdops.etcd.plugins.modules \
    WARM_RUNNER_TRUSTED=ansible.builtin.include_tasks,requeue_after,ansible_collections.etcdops.etcd.plugins.modules

# The entry point is that of the base: tini, and ansible-operator with ./watches.yaml.
WORKDIR /opt/ansible
USER 1001
