"""What the peers need: looked for on the machine, downloaded once, kept in a cache of the user's."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

RHEA = "rhea@3.0.5"
WS = "ws@8.18.0"
QPID_JMS = "2.10.0"
ARTEMIS = "2.40.0"
BROKER_J = "9.2.1"
CLASSIC = "6.1.6"
GO_AMQP = "github.com/Azure/go-amqp"
GO_AMQP_VERSION = "v1.7.0"

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>jmsish</groupId><artifactId>interop</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
{}
  </dependencies>
</project>
"""
DEPENDENCY = "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
QUIET = "org.slf4j:slf4j-nop:2.0.17"
JMS_2 = "1.13.0"
"""The last Qpid JMS whose package is javax.jms."""


class Missing(Exception):
    """Something that a peer needs is not on this machine; the text says what."""


def cache(*parts: str) -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base.joinpath("jmsish-interop", *parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def program(name: str, wanted_for: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Missing(f"{wanted_for} needs {name}, which is not installed")
    return found


def proton() -> None:
    if importlib.util.find_spec("proton") is None:
        raise Missing("python-qpid-proton is not installed (pip install 'jmsish[peers]', needs a C compiler)")


def stomp() -> None:
    if importlib.util.find_spec("stomp") is None:
        raise Missing("stomp.py is not installed (pip install 'jmsish[peers]')")


def rhea() -> Path:
    """The folder that NODE_PATH must name."""
    program("node", "rhea")
    npm = program("npm", "rhea")
    folder = cache(RHEA)
    if not (folder / "node_modules/rhea/package.json").exists():
        (folder / "package.json").write_text('{"private": true}\n')
        _run([npm, "install", "--no-audit", "--no-fund", "--no-save", "--prefix", str(folder), RHEA], folder)
    return folder / "node_modules"


def rhea_websocket() -> Path:
    """As :func:`rhea`, with a WebSocket for it: Node has one of its own only from version 22 on."""
    modules = rhea()
    if not (modules / "ws/package.json").exists():
        folder = modules.parent
        _run(
            [
                program("npm", "ws"),
                "install",
                "--no-audit",
                "--no-fund",
                "--no-save",
                "--prefix",
                str(folder),
                RHEA,
                WS,
            ],
            folder,
        )
    return modules


def qpid_jms(source: Path) -> str:
    """The class path with Qpid JMS and the compiled `source` on it."""
    return _java(f"qpid-jms-{QPID_JMS}", [f"org.apache.qpid:qpid-jms-client:{QPID_JMS}", QUIET], source)


def joram(source: Path) -> str:
    """The class path with the JORAM conformance tests, what runs them, Qpid JMS and the compiled `source` on it."""
    artifacts = ["org.fusesource.joram-jms-tests:joram-jms-tests:1.0", f"org.apache.qpid:qpid-jms-client:{JMS_2}"]
    artifacts += ["org.junit.platform:junit-platform-console:1.11.4", "org.junit.vintage:junit-vintage-engine:5.11.4"]
    artifacts += [QUIET]
    return _java("joram-jms-tests-1.0", artifacts, source)


def _java(name: str, artifacts: list[str], source: Path) -> str:
    """The class path with these artifacts of Maven Central and the compiled `source` on it."""
    program("java", name)
    javac = program("javac", name)
    folder = cache(name)
    listing, pom = folder / "classpath.txt", folder / "pom.xml"
    wanted = POM.format("\n".join(DEPENDENCY.format(*artifact.split(":")) for artifact in artifacts))
    if not _resolved(listing) or pom.read_text() != wanted:
        pom.write_text(wanted)
        _maven(folder, "dependency:build-classpath", f"-Dmdep.outputFile={listing}")
    path = listing.read_text().strip()
    classes = folder / hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    if not classes.exists():
        partial = classes.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        _run([javac, "-nowarn", "-Xlint:none", "-cp", path, "-d", str(partial), str(source.resolve())], folder)
        partial.rename(classes)
    return os.pathsep.join([str(classes), path])


def _resolved(listing: Path) -> bool:
    return listing.exists() and all(Path(jar).exists() for jar in listing.read_text().split(os.pathsep))


def artemis() -> Path:
    """The home of an unpacked Artemis."""
    program("java", "Apache Artemis")
    folder = cache(f"artemis-{ARTEMIS}")
    home = folder / f"apache-artemis-{ARTEMIS}"
    if not home.exists():
        artifact = f"org.apache.activemq:apache-artemis:{ARTEMIS}:zip:bin"
        _maven(folder, "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}")
        archive = folder / f"apache-artemis-{ARTEMIS}-bin.zip"
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(folder / "partial")
        (folder / "partial" / home.name / "bin/artemis").chmod(0o755)
        (folder / "partial" / home.name).rename(home)
        archive.unlink()
    return home


def broker_j() -> Path:
    """The home of an unpacked Qpid Broker-J."""
    program("java", "Qpid Broker-J")
    folder = cache(f"broker-j-{BROKER_J}")
    home = folder / "qpid-broker" / BROKER_J
    if not home.exists():
        artifact = f"org.apache.qpid:apache-qpid-broker-j:{BROKER_J}:tar.gz:bin"
        _maven(folder, "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}")
        archive = folder / f"apache-qpid-broker-j-{BROKER_J}-bin.tar.gz"
        partial = folder / "partial"
        with tarfile.open(archive) as packed:
            # Early 3.10 and 3.11 have no filters yet; the archive is Maven Central's, by its checksum.
            packed.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
            packed.extractall(partial)
        home.parent.mkdir(exist_ok=True)
        (partial / "qpid-broker" / BROKER_J).rename(home)
        shutil.rmtree(partial)
        archive.unlink()
    return home


def classic(source: Path) -> str:
    """The class path with ActiveMQ Classic and the compiled `source` on it."""
    names = ("activemq-broker", "activemq-amqp", "activemq-kahadb-store")
    return _java(f"activemq-{CLASSIC}", [*(f"org.apache.activemq:{name}:{CLASSIC}" for name in names), QUIET], source)


def rabbitmq() -> Path:
    """The program that starts RabbitMQ, of the package rabbitmq-server; not the one on the PATH, which changes user."""
    server = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    if not server.exists():
        raise Missing("RabbitMQ is not installed (apt-get install rabbitmq-server)")
    return server


def go_amqp() -> Path:
    """go-amqp's own tests, as a program."""
    usual = Path("/usr/local/go/bin/go")  # Where Go's own installer puts it; not always on the PATH.
    go = str(usual) if usual.exists() else program("go", "go-amqp")
    folder = cache(f"go-amqp-{GO_AMQP_VERSION}")
    tests = folder / "go-amqp.test"
    if not tests.exists():
        (folder / "go.mod").write_text("module interop\n")
        partial = folder / "partial.test"
        _run([go, "get", "-t", f"{GO_AMQP}@{GO_AMQP_VERSION}"], folder)
        _run([go, "test", "-c", "-o", str(partial), GO_AMQP], folder)
        partial.rename(tests)
    return tests


def _maven(folder: Path, *arguments: str) -> None:
    _run([program("mvn", "a download from Maven Central"), "-q", "-B", *arguments], folder)


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    if done.returncode:
        raise Missing(f"{Path(command[0]).name} {command[1]} failed: {done.stdout.strip()[-600:]}")
