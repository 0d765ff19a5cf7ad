"""Brokers not written here that keep what is persistent: each in a folder and on a port of its own, to be started,
stopped, killed with SIGKILL, and started again as they were."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from jmsish.conformance import Scorecard
from tests.interop import fetch
from tests.interop.brokers import Output, free_port

PATIENCE = 120.0
"""Seconds until a broker must say that it serves: longer than the others wait, for it may have a journal to read."""

CLASSIC_SOURCE = Path(__file__).parents[1] / "peers/ClassicBroker.java"


class Server(ABC):
    """One broker."""

    title: str
    """With its version, as the page names it."""
    sign: str
    """What it prints when it serves."""
    transactions = True
    queue_prefix = ""
    """What a client that knows nothing of profiles (Qpid JMS) has to put before the names of queues."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.card: Scorecard | None = None
        """What came of `jmsish check`, which takes a while, so that it is run once."""
        self._process: subprocess.Popen[str] | None = None
        self._output: Output | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self.prepare()

    @property
    def url(self) -> str:
        return f"amqp://127.0.0.1:{self.port}"

    @staticmethod
    @abstractmethod
    def fetch() -> object:
        """Looks for what it needs, or downloads it; `fetch.Missing` where that cannot be."""

    @abstractmethod
    def prepare(self) -> None:
        """Writes its configuration."""

    @abstractmethod
    def command(self) -> list[str]: ...

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def start(self) -> None:
        """Starts it, and waits until it serves."""
        assert self._process is None, f"{self.title} runs already"
        # A group of its own, so that what it starts ends with it.
        self._process = subprocess.Popen(
            self.command(), cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        self._output = Output(self._process, self.sign)
        if not self._output.serving.wait(PATIENCE) or self._process.poll() is not None:
            said = "".join(self._output.said[-20:])
            self.kill()
            raise RuntimeError(f"{self.title} does not serve: {said}")

    def kill(self) -> None:
        """Ends it without a chance to say or write anything."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Asks it to end, and waits until it has."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        try:
            os.killpg(process.pid, how)
        except ProcessLookupError:
            pass
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(60)
        assert self._output is not None
        self._output.finish()

    def last_words(self) -> str:
        """What it printed last."""
        return "" if self._output is None else "".join(self._output.said[-20:])

    def restart(self) -> None:
        self.stop()
        self.start()

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Artemis(Server):
    """Apache Artemis with its journal."""

    title = f"Artemis {fetch.ARTEMIS}"
    sign = "AMQ221007"
    fetch = staticmethod(fetch.artemis)

    def prepare(self) -> None:
        options = ["--user", "admin", "--password", "admin", "--allow-anonymous", "--no-web", "--host", "127.0.0.1"]
        options += ["--default-port", str(self.port), "--no-autotune", "--nio", "--silent"]
        options += [f"--no-{name}-acceptor" for name in ("amqp", "stomp", "hornetq", "mqtt")]
        create = [fetch.artemis() / "bin/artemis", "create", self.folder / "instance", *options]
        subprocess.run(create, check=True, capture_output=True, timeout=120)

    def command(self) -> list[str]:
        return [str(self.folder / "instance/bin/artemis"), "run"]


class BrokerJ(Server):
    """Qpid Broker-J with messages in Derby and the names of its queues in a file."""

    title = f"Broker-J {fetch.BROKER_J}"
    sign = "BRK-1004"
    fetch = staticmethod(fetch.broker_j)

    def prepare(self) -> None:
        (self.folder / "config.json").write_text(json.dumps(self._configuration()))

    def _configuration(self) -> dict[str, Any]:
        queue = {"pattern": ".*", "nodeType": "queue", "createdOnPublish": "true", "createdOnConsume": "true"}
        durable = {"attributes": {"durable": "true"}}
        host = {
            "type": "DERBY",
            "storePath": "${qpid.work_dir}/derby",
            "nodeAutoCreationPolicies": [{**queue, **durable}],
        }
        node = {"name": "default", "type": "JSON", "defaultVirtualHostNode": "true"}
        aliases = [{"name": name, "type": name} for name in ("nameAlias", "defaultAlias", "hostnameAlias")]
        port = {"name": "AMQP", "type": "AMQP", "authenticationProvider": "anonymous", "virtualhostaliases": aliases}
        return {
            "name": "Broker",
            "modelVersion": "9.1",
            "authenticationproviders": [{"name": "anonymous", "type": "Anonymous"}],
            "ports": [{**port, "bindingAddress": "127.0.0.1", "port": self.port, "protocols": ["AMQP_1_0"]}],
            "virtualhostnodes": [{**node, "virtualHostInitialConfiguration": json.dumps(host)}],
        }

    def command(self) -> list[str]:
        home = fetch.broker_j()
        java = ["java", "-Xmx512m", f"-DQPID_WORK={self.folder}", "-cp", f"{home}/lib/*", "org.apache.qpid.server.Main"]
        where = ["--config-property", f"qpid.work_dir={self.folder}"]
        return [*java, "--store-type", "JSON", "--initial-config-path", str(self.folder / "config.json"), *where]


class Classic(Server):
    """ActiveMQ Classic with KahaDB."""

    title = f"ActiveMQ Classic {fetch.CLASSIC}"
    sign = "serving"
    queue_prefix = "queue://"

    @staticmethod
    def fetch() -> str:
        return fetch.classic(CLASSIC_SOURCE)

    def prepare(self) -> None:
        (self.folder / "data").mkdir(exist_ok=True)

    def command(self) -> list[str]:
        java = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", self.fetch(), "ClassicBroker"]
        return [*java, str(self.port), str(self.folder / "data")]


class RabbitMQ(Server):
    """RabbitMQ with its AMQP 1.0 plugin, beside an epmd of its own."""

    title = "RabbitMQ 3"
    sign = "Server startup complete"
    transactions = False
    queue_prefix = "/amq/queue/"
    fetch = staticmethod(fetch.rabbitmq)

    def prepare(self) -> None:
        self._epmd_port, self._distribution_port = free_port(), free_port()
        self._epmd: subprocess.Popen[bytes] | None = None
        settings = [f"listeners.tcp.1 = 127.0.0.1:{self.port}", "log.console = true", "log.file = false"]
        (self.folder / "rabbitmq.conf").write_text("\n".join(settings) + "\n")
        (self.folder / "enabled_plugins").write_text("[rabbitmq_amqp1_0].\n")
        (self.folder / "home").mkdir(exist_ok=True)

    def environment(self) -> dict[str, str]:
        places = {"RABBITMQ_MNESIA_BASE": "mnesia", "RABBITMQ_LOG_BASE": "log", "RABBITMQ_CONFIG_FILE": "rabbitmq.conf",
                  "RABBITMQ_ENABLED_PLUGINS_FILE": "enabled_plugins", "HOME": "home"}  # fmt: skip
        return {
            **os.environ,
            **{name: str(self.folder / place) for name, place in places.items()},
            "RABBITMQ_NODENAME": f"lab{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self._epmd_port),
        }

    def command(self) -> list[str]:
        return [str(fetch.rabbitmq())]

    def start(self) -> None:
        # Started here, it ends here; a node that finds none starts one that stays.
        if self._epmd is None:
            command = [fetch.program("epmd", "RabbitMQ"), "-address", "127.0.0.1", "-port", str(self._epmd_port)]
            self._epmd = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        super().start()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait()


SERVERS: dict[str, type[Server]] = {
    "artemis": Artemis,
    "broker-j": BrokerJ,
    "classic": Classic,
    "rabbitmq": RabbitMQ,
}
