# The content of the official ansible-operator image, from Debian, PyPI and the ansible-operator that the sandbox builds.
# sandbox/images/operator.py fills the context: rootfs.tar, wheels/ and extra/.
FROM scratch
ADD rootfs.tar /
COPY extra /

RUN --mount=type=bind,source=wheels,target=/mnt \
    PYTHONPATH=$(echo /mnt/pip-*.whl) python3 -m pip install --quiet --no-cache-dir --root-user-action=ignore \
      --no-index --find-links=/mnt --require-hashes --no-compile -r /mnt/runtime.txt \
 && rm -rf /etc/apt /usr/local/lib/python3*/dist-packages/ansible_test /usr/local/bin/ansible-test \
 && find /usr/local/lib -depth -type d -name tests -exec rm -r {} + \
 && python3 -m compileall -q --invalidation-mode unchecked-hash /usr/local/lib \
 && ln -s usr/bin/tini /tini \
 && echo "ansible:x:1001:0:ansible user:/opt/ansible:/sbin/nologin" >> /etc/passwd \
 && mkdir -p /opt/ansible

ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/opt/ansible USER_NAME=ansible USER_UID=1001
WORKDIR /opt/ansible
USER 1001
ENTRYPOINT ["/tini", "--", "/usr/local/bin/ansible-operator", "run", "--watches-file=./watches.yaml"]
