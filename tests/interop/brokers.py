"""Brokers not written here, as processes: started on a free port of the loopback interface, ended on the way out."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.interop import fetch

PATIENCE = 90.0
"""Seconds until a broker must say that it serves."""


@contextmanager
def artemis(folder: Path) -> Iterator[str]:
    """`host:port` of an Apache Artemis without persistence; `folder` takes its files."""
    home = fetch.artemis()
    instance = folder / "instance"
    port = free_port()
    options = ["--user", "admin", "--password", "admin", "--allow-anonymous", "--no-web", "--host", "127.0.0.1"]
    options += ["--default-port", str(port), "--disable-persistence", "--no-autotune", "--silent"]
    options += [f"--no-{name}-acceptor" for name in ("amqp", "stomp", "hornetq", "mqtt")]
    subprocess.run([home / "bin/artemis", "create", instance, *options], check=True, capture_output=True, timeout=60)
    with _Running([str(instance / "bin/artemis"), "run"], folder, "AMQ221007"):  # Server is now active
        yield f"127.0.0.1:{port}"


@contextmanager
def broker_j(folder: Path) -> Iterator[str]:
    """`host:port` of a Qpid Broker-J that lets everybody in and makes queues; `folder` takes its files."""
    home = fetch.broker_j()
    port = free_port()
    configuration = folder / "config.json"
    configuration.write_text(json.dumps(_broker_j_configuration(port)))
    command = ["java", "-Xmx512m", f"-DQPID_WORK={folder}", "-cp", f"{home}/lib/*", "org.apache.qpid.server.Main"]
    command += ["--store-type", "Memory", "--initial-config-path", str(configuration)]
    command += ["--config-property", f"qpid.work_dir={folder}"]
    with _Running(command, folder, "BRK-1004"):  # The port answers earlier than that.
        yield f"127.0.0.1:{port}"


def _broker_j_configuration(port: int) -> dict[str, Any]:
    any_queue = {"pattern": ".*", "nodeType": "queue", "createdOnPublish": "true", "createdOnConsume": "true"}
    # A host of type Memory refuses durable messages.
    host = {
        "type": "DERBY",
        "storePath": "${qpid.work_dir}/derby",
        "nodeAutoCreationPolicies": [{**any_queue, "attributes": {}}],
    }
    aliases = [{"name": name, "type": name} for name in ("nameAlias", "defaultAlias", "hostnameAlias")]
    listening = {"bindingAddress": "127.0.0.1", "port": port, "protocols": ["AMQP_1_0"]}
    node = {"name": "default", "type": "Memory", "defaultVirtualHostNode": "true"}
    return {
        "name": "Broker",
        "modelVersion": "9.1",
        "authenticationproviders": [{"name": "anonymous", "type": "Anonymous"}],
        "ports": [
            {
                "name": "AMQP",
                "type": "AMQP",
                "authenticationProvider": "anonymous",
                "virtualhostaliases": aliases,
                **listening,
            }
        ],
        "virtualhostnodes": [{**node, "virtualHostInitialConfiguration": json.dumps(host)}],
    }


class Output:
    """Reads what a broker prints, and says when it serves."""

    def __init__(self, process: subprocess.Popen[str], sign: str) -> None:
        self.sign = sign
        self.serving = threading.Event()
        """Set too when the output ends: then it will never serve."""
        self.said: list[str] = []
        self._process = process
        self._reader = threading.Thread(target=self._read, name="broker-output", daemon=True)
        self._reader.start()

    def finish(self) -> None:
        self._reader.join(10)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                self.said.append(line)
                if self.sign in line:
                    self.serving.set()
        self.serving.set()


class _Running:
    """A broker as a process: entered once it says that it serves."""

    def __init__(self, command: list[str], folder: Path, sign: str) -> None:
        self.name = Path(command[0]).name
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.output = Output(self.process, sign)

    def __enter__(self) -> None:
        if not self.output.serving.wait(PATIENCE) or self.process.poll() is not None:
            self.__exit__()
            raise RuntimeError(f"{self.name} does not serve: " + "".join(self.output.said[-20:]))

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(60)
        self.output.finish()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
