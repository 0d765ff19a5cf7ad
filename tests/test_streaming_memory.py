"""200 MB through a broker in a process of its own: the client holds a little of it, the broker all of it, once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SIZE = 200 << 20
BOUND = 16 << 20

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")

CLIENT = '''
import asyncio, hashlib, io, os, sys
import jmsish
from jmsish import aio

url, size, face = sys.argv[1], int(sys.argv[2]), sys.argv[3]
options = {"stream_threshold": 1 << 20, "prefetch": 10}

class Source(io.RawIOBase):
    """A file of a known size, made as it is read."""
    def __init__(self):
        self.at, self.hash, self.block = 0, hashlib.sha256(), os.urandom(1 << 16)
    def seekable(self): return True
    def tell(self): return self.at
    def seek(self, offset, whence=0):
        self.at = size if whence == 2 else offset
        return self.at
    def read(self, count=-1):
        piece = self.block[: min(count, size - self.at)]
        self.at += len(piece)
        self.hash.update(piece)
        return piece

def memory(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))

def warm(): return [b"warm" * 100_000]

def blocking():
    with jmsish.connect(url, **options) as connection:
        session = connection.create_session(acknowledge_mode=jmsish.AcknowledgeMode.CLIENT)
        queue = session.create_queue("large")
        producer, consumer = session.create_producer(queue), session.create_consumer(queue)
        producer.send(stream=warm())
        consumer.receive(timeout=30).acknowledge()
        source, read = Source(), hashlib.sha256()
        before = memory("VmRSS")
        producer.send(stream=source)
        consumer.receive(timeout=30)
        session.recover()
        message = consumer.receive(timeout=30)
        assert message.delivery_count == 2
        with message.open() as body:
            while piece := body.read(1 << 16):
                read.update(piece)
        message.acknowledge()
        print(memory("VmHWM") - before, source.hash.hexdigest() == read.hexdigest(), source.at)

async def asynchronous():
    async with aio.connect(url, **options) as connection:
        session = await connection.create_session(acknowledge_mode=jmsish.AcknowledgeMode.CLIENT)
        queue = session.create_queue("large")
        producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
        await producer.send(stream=warm())
        await (await consumer.receive(timeout=30)).acknowledge()
        source, read = Source(), hashlib.sha256()
        before = memory("VmRSS")
        await producer.send(stream=source)
        await consumer.receive(timeout=30)
        await session.recover()
        message = await consumer.receive(timeout=30)
        assert message.delivery_count == 2
        async with message.open() as body:
            while piece := await body.read(1 << 16):
                read.update(piece)
        await message.acknowledge()
        print(memory("VmHWM") - before, source.hash.hexdigest() == read.hexdigest(), source.at)

blocking() if face == "sync" else asyncio.run(asynchronous())
'''


@pytest.fixture
def broker() -> Iterator[tuple[str, int]]:
    """The URL of a broker in a process of its own, and the number of that process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = (sys.executable, "-m", "jmsish", "broker", "--host", "127.0.0.1", "--port", "0")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1], process.pid
        process.terminate()


def peak(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


@pytest.mark.parametrize("face", ["sync", "aio"])
def test_streams_take_little_memory(broker: tuple[str, int], face: str) -> None:
    """Also of a message that comes again, with another count in its header."""
    url, process = broker
    before = peak(process)
    # One arena: what is measured is what the client holds, not what each of its threads has let go and glibc keeps.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MALLOC_ARENA_MAX": "1"}
    command = (sys.executable, "-c", CLIENT, url, str(SIZE), face)
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, env=environment)
    assert done.returncode == 0, done.stderr
    grown, same, sent = done.stdout.split()
    assert same == "True" and int(sent) == SIZE
    assert int(grown) < BOUND, f"the client grew by {int(grown) >> 20} MB"
    assert peak(process) - before < 1.2 * SIZE, f"the broker grew by {(peak(process) - before) >> 20} MB"
