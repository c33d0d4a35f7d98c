"""Measures the package beside others that speak to robots from Python, by turns in one run.

    python bench.py                                    tsuji alone
    python bench.py --peer roswell --peer zenoh        and those, which are to be installed beside it
    python bench.py --rclpy "ros2_env/bin/python"      and a real rclpy, by that command; TSUJI_… and RMW_… apply to it
    python bench.py --rclpy "python -m tsuji.rclpy"    and tsuji's own
    python bench.py --rust target/release/examples/pictures
                                                       and pictures by the Rust API: cargo build --release --example pictures, in this workspace
    python bench.py --case trips --processor 1         round trips alone, both processes on one processor

Each figure is of two processes. A round trip is 44 bytes there and back (60 as a message of ROS 2), each time as a new message, one at a time; the
other end of asyncio's waits as programs without it do. One way is as many of them as go in order, all of which must arrive. Pictures have 2.36 MB
and come at 30 Hz; their latency is from an array of numpy in hand to an array, or bytes, in hand at the other end, with all that a package wants done
between, on the monotonic clock that both processes share. A loan's is from its publishing, as it is filled before. Medians of the turns; latencies are
in milliseconds.
"""

import argparse
import asyncio
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEIGHT, WIDTH, RATE_HZ = 1024, 768, 30
PICTURE_BYTES = HEIGHT * WIDTH * 3
SMALL = bytes(44)
PATIENCE = 30
END = b"end"


def stamp():
    return time.monotonic_ns().to_bytes(8, "little")


def age_ms(data):
    return (time.monotonic_ns() - int.from_bytes(bytes(data[:8]), "little")) / 1e6


class Tsuji:
    """tsuji, by calls that wait."""

    cases = ("trips", "oneway", "picture", "loan")
    # How many go one way, in some seconds.
    one_way = 100_000

    def __init__(self, role):
        import tsuji

        self.tsuji, self.node = tsuji, tsuji.Node(role)

    def type(self, is_picture):
        return "sensor_msgs/msg/Image" if is_picture else "std_msgs/msg/UInt8MultiArray"

    def qos(self, is_picture):
        # One way all must arrive, however far the reader falls behind.
        return self.tsuji.QoS(5) if is_picture else self.tsuji.QoS(history="keep_all")

    def writer(self, topic, is_picture, is_lent=False):
        publisher = self.node.publisher(topic, self.type(is_picture), self.qos(is_picture))
        self.publisher = publisher
        if is_lent:

            def lend():
                with publisher.loan(height=HEIGHT, width=WIDTH, encoding="rgb8") as picture:
                    data = picture.data
                    data[8] = 9
                    # Nothing comes between this and the end of the loan.
                    data[:8] = bytearray(stamp())
                    del data

            return lend
        message = self.tsuji.load(self.type(is_picture))
        if is_picture:
            return lambda data: publisher.publish(message(height=HEIGHT, width=WIDTH, step=3 * WIDTH, encoding="rgb8", data=data))
        return lambda data: publisher.publish(message(data=data))

    def reader(self, topic, is_picture):
        self.subscription = self.node.subscribe(topic, self.type(is_picture), self.qos(is_picture))
        return lambda: self.subscription.recv(timeout=PATIENCE).data

    def meet(self):
        self.publisher.wait_for_subscriptions(timeout=PATIENCE)
        self.subscription.wait_for_publishers(timeout=PATIENCE)

    def flush(self):
        self.publisher.wait_for_acknowledgements(timeout=PATIENCE)


class TsujiAsyncio(Tsuji):
    """tsuji, by an event loop."""

    cases = ("trips", "oneway")

    def trips(self, write, seconds):
        async def count():
            done, until = 0, time.monotonic() + seconds
            messages = aiter(self.subscription)
            while time.monotonic() < until:
                write(SMALL)
                (await anext(messages)).data
                done += 1
            return done

        return asyncio.run(count())

    def receive(self, number):
        async def all_of_them():
            messages = aiter(self.subscription)
            for _ in range(number):
                (await anext(messages)).data

        asyncio.run(all_of_them())


class Roswell:
    """roswell, by calls that wait."""

    cases = ("trips", "oneway", "picture")
    one_way = 2_000

    def __init__(self, role):
        import roswell

        self.roswell, self.node = roswell, roswell.Node(role, domain=int(os.environ["ROS_DOMAIN_ID"]))
        # It does not bring the messages that the others are measured with.
        folder = Path(tempfile.mkdtemp()) / "bench_msgs" / "msg"
        folder.mkdir(parents=True)
        (folder / "Data.msg").write_text("uint8[] data\n")
        self.type = self.node.load_type(str(folder / "Data.msg"))
        shutil.rmtree(folder.parents[1])

    def writer(self, topic, is_picture):
        import numpy

        publisher = self.node.publisher(topic, self.type, qos=self.qos(is_picture))

        def write(data):
            message = publisher.new()
            message.data = numpy.frombuffer(data, dtype=numpy.uint8)
            publisher.publish(message)

        return write

    def qos(self, is_picture):
        return self.roswell.QosProfile(depth=5) if is_picture else self.roswell.QosProfile(keep_all=True)

    def reader(self, topic, is_picture):
        messages = self.node.subscribe(topic, self.type, qos=self.qos(is_picture)).messages(timeout=PATIENCE)
        return lambda: next(messages).data

    def meet(self):
        time.sleep(3)

    def flush(self):
        time.sleep(1)


class CycloneDds:
    """Cyclone DDS's own package."""

    cases = ("trips", "oneway", "picture")
    one_way = 10_000

    def __init__(self, role):
        from dataclasses import dataclass

        from cyclonedds.domain import DomainParticipant
        from cyclonedds.idl import IdlStruct
        from cyclonedds.idl.types import sequence, uint8

        @dataclass
        class Data(IdlStruct, typename="Data"):
            data: sequence[uint8]

        self.data, self.participant = Data, DomainParticipant(int(os.environ["ROS_DOMAIN_ID"]))

    def topic(self, name):
        from cyclonedds.topic import Topic

        return Topic(self.participant, name, self.data)

    def qos(self, is_picture):
        from cyclonedds.core import Policy, Qos

        history = Policy.History.KeepLast(5) if is_picture else Policy.History.KeepAll
        from cyclonedds.util import duration

        return Qos(Policy.Reliability.Reliable(duration(seconds=PATIENCE)), history)

    def writer(self, topic, is_picture):
        from cyclonedds.pub import DataWriter

        self.out = DataWriter(self.participant, self.topic(topic), qos=self.qos(is_picture))
        return lambda data: self.out.write(self.data(data=bytes(data)))

    def reader(self, topic, is_picture):
        from cyclonedds.sub import DataReader
        from cyclonedds.util import duration

        self.into = DataReader(self.participant, self.topic(topic), qos=self.qos(is_picture))
        return lambda: next(self.into.take_iter(timeout=duration(seconds=PATIENCE))).data

    def meet(self):
        until = time.monotonic() + PATIENCE
        while not (self.out.get_matched_subscriptions() and self.into.get_matched_publications()):
            if until < time.monotonic():
                raise TimeoutError("nobody is met")
            time.sleep(0.01)
        time.sleep(0.5)

    def flush(self):
        time.sleep(1)


class Zenoh:
    """Zenoh's own package: bytes, without the messages of ROS 2."""

    cases = ("trips", "oneway", "picture")
    one_way = 100_000

    def __init__(self, role):
        import zenoh

        config = zenoh.Config()
        # One process waits for the other at a port of its own.
        port = 20_000 + int(os.environ["ROS_DOMAIN_ID"])
        config.insert_json5("scouting/multicast/enabled", "false")
        key = "listen/endpoints" if role == "far" else "connect/endpoints"
        config.insert_json5(key, json.dumps([f"tcp/127.0.0.1:{port}"]))
        config.insert_json5("connect/timeout_ms", "20000")
        self.session = zenoh.open(config)
        self.zenoh = zenoh

    def writer(self, topic, is_picture):
        publisher = self.session.declare_publisher(topic.strip("/"), congestion_control=self.zenoh.CongestionControl.BLOCK)
        return lambda data: publisher.put(bytes(data))

    def reader(self, topic, is_picture):
        subscriber = self.session.declare_subscriber(topic.strip("/"))
        return lambda: subscriber.recv().payload.to_bytes()

    def meet(self):
        time.sleep(1)

    def flush(self):
        time.sleep(1)


class Rclpy:
    """rclpy, by spinning a node."""

    cases = ("trips", "oneway", "picture")
    one_way = 10_000

    def __init__(self, role):
        import rclpy

        rclpy.init()
        self.rclpy, self.node = rclpy, rclpy.create_node(role)
        self.executor = rclpy.executors.SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.heard = []

    def qos(self, is_picture):
        from rclpy.qos import HistoryPolicy, QoSProfile

        return QoSProfile(depth=5) if is_picture else QoSProfile(history=HistoryPolicy.KEEP_ALL)

    def writer(self, topic, is_picture):
        import array

        # Its wheels bring no pictures.
        from std_msgs.msg import UInt8MultiArray

        self.publisher = self.node.create_publisher(UInt8MultiArray, topic, self.qos(is_picture))
        return lambda data: self.publisher.publish(UInt8MultiArray(data=array.array("B", bytes(data))))

    def reader(self, topic, is_picture):
        from std_msgs.msg import UInt8MultiArray

        self.topic = topic
        # It stays as long as somebody has it.
        self.subscription = self.node.create_subscription(UInt8MultiArray, topic, self.heard.append, self.qos(is_picture))

        def read():
            until = time.monotonic() + PATIENCE
            while not self.heard:
                self.executor.spin_once(timeout_sec=1)
                if until < time.monotonic():
                    raise TimeoutError("no message")
            return self.heard.pop(0).data

        return read

    def meet(self):
        until = time.monotonic() + PATIENCE
        while not (self.publisher.get_subscription_count() and self.node.count_publishers(self.topic)):
            self.executor.spin_once(timeout_sec=0.05)
            if until < time.monotonic():
                raise TimeoutError("nobody is met")
        time.sleep(0.5)

    def flush(self):
        time.sleep(1)


class Rust:
    """tsuji by its Rust API, in programs of their own."""

    cases = ("picture", "loan")


PEERS = {
    "tsuji": Tsuji,
    "tsuji-asyncio": TsujiAsyncio,
    "roswell": Roswell,
    "cyclonedds": CycloneDds,
    "zenoh": Zenoh,
    "rclpy": Rclpy,
    "rust": Rust,
}

# Those that are run by a command which is given.
BY_COMMAND = ("rclpy", "rust")


def far(peer, case):
    """The other process: sends back what it hears, or receives."""
    read, write = peer.reader("there", case in ("picture", "loan")), peer.writer("back", False)
    peer.meet()
    if case == "trips":
        while len(data := read()) == len(SMALL):
            write(bytes(data))
    elif case == "oneway":
        write(SMALL)
        if hasattr(peer, "receive"):
            peer.receive(peer.one_way)
        else:
            for _ in range(peer.one_way):
                read()
        write(SMALL)
    else:
        write(SMALL)
        ages = []
        while True:
            data = read()
            age = age_ms(data)
            if bytes(data[:8]) == bytes(8):
                break
            ages.append(age)
        print(json.dumps(ages))
    peer.flush()


def near(peer, case, seconds):
    """The process that asks. Returns its figure, if it is the one to have one."""
    is_picture = case in ("picture", "loan")
    write = peer.writer("there", is_picture, True) if case == "loan" else peer.writer("there", is_picture)
    read = peer.reader("back", False)
    peer.meet()
    if case == "trips":
        if hasattr(peer, "trips"):
            done = peer.trips(write, seconds)
        else:
            done, until = 0, time.monotonic() + seconds
            while time.monotonic() < until:
                write(SMALL)
                read()
                done += 1
        print(json.dumps(done / seconds))
        write(END)
    elif case == "oneway":
        read()
        begun = time.monotonic()
        for _ in range(peer.one_way):
            write(SMALL)
        read()
        print(json.dumps(peer.one_way / (time.monotonic() - begun)))
    else:
        import numpy

        frame = numpy.full(PICTURE_BYTES, 7, dtype=numpy.uint8)
        read()
        due = time.monotonic()
        for _ in range(int(seconds * RATE_HZ)):
            due += 1 / RATE_HZ
            time.sleep(max(0.0, due - time.monotonic()))
            if case == "loan":
                write()
            else:
                frame[:8] = bytearray(stamp())
                write(frame)
        frame[:8] = 0
        if case == "loan":
            with peer.publisher.loan(height=HEIGHT, width=WIDTH, encoding="rgb8") as last:
                last.data[:8] = 0
        else:
            write(frame)
    peer.flush()


def measure(peer, command, case, seconds, processor):
    """One turn of a case; what it has found, in the units of the case."""
    environment = {**os.environ, "ROS_DOMAIN_ID": str(20 + os.getpid() % 80), "OPENBLAS_NUM_THREADS": "1"}
    words = [*shlex.split(command), os.path.abspath(__file__), "--as", peer, "--case", case, "--seconds", str(seconds)]
    if processor is not None:
        words += ["--processor", str(processor)]
    others = []
    try:
        for role in ("far", "near"):
            others.append(subprocess.Popen([*words, "--role", role], stdout=subprocess.PIPE, text=True, env=environment))
        said = [it.communicate(timeout=seconds + 120)[0] for it in others]
        if any(it.returncode for it in others):
            raise RuntimeError(f"{peer}, {case}: a process ended with {[it.returncode for it in others]}")
    finally:
        for it in others:
            it.kill()
            it.wait()
    if case in ("trips", "oneway"):
        return {"per second": json.loads(said[1])}
    # The first second is not measured: memory is made and touched then.
    ages = sorted(json.loads(said[0])[RATE_HZ:])
    if not ages:
        raise RuntimeError(f"{peer}, {case}: no picture after the first second")
    return {"median": statistics.median(ages), "p99": ages[int(len(ages) * 0.99)]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="\n".join(__doc__.splitlines()[1:]), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="append", choices=[it for it in PEERS if it not in BY_COMMAND], help="what is measured beside tsuji")
    parser.add_argument("--rclpy", action="append", default=[], metavar="COMMAND", help="a Python that has rclpy")
    parser.add_argument("--rust", metavar="PROGRAM", help="what measures the Rust API: benches/pictures.rs, built")
    parser.add_argument("--case", action="append", choices=["trips", "oneway", "picture", "loan"], help="what is measured (default: all)")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each turn is (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=3, help="how often each is measured (default: %(default)s)")
    parser.add_argument("--processor", type=int, help="the one that both processes run on (default: any)")
    parser.add_argument("--json", metavar="FILE", help="where the figures go too")
    parser.add_argument("--as", dest="peer_name", help=argparse.SUPPRESS)
    parser.add_argument("--role", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.rust and asked.processor is not None:
        parser.error("--rust does not choose a processor: leave --processor out, or run it all under taskset")
    if asked.role:
        if asked.processor is not None:
            os.sched_setaffinity(0, {asked.processor})
        peer = PEERS[asked.peer_name](asked.role)
        if asked.role == "far":
            far(peer, asked.case[0])
        else:
            near(peer, asked.case[0], asked.seconds)
        # Not by the ends of their objects, which differ.
        sys.stdout.flush()
        os._exit(0)
    measured = [(name, name, sys.executable) for name in ["tsuji", "tsuji-asyncio", *(asked.peer or [])]]
    measured += [("rclpy", f"rclpy {number}: …{command[-30:]}", command) for number, command in enumerate(asked.rclpy, 1)]
    if asked.rust:
        measured.append(("rust", "rust", asked.rust))
    figures = {}
    for case in asked.case or ["trips", "oneway", "picture", "loan"]:
        for _ in range(asked.turns):
            for peer, label, command in measured:
                if case in PEERS[peer].cases:
                    try:
                        found = measure(peer, command, case, asked.seconds, asked.processor)
                    except (RuntimeError, subprocess.TimeoutExpired) as error:
                        print(f"{label}, {case}: {error}", file=sys.stderr)
                        continue
                    figures.setdefault(case, {}).setdefault(label, []).append(found)
        for label, turns in figures.get(case, {}).items():
            cells = [f"{key} {statistics.median(it[key] for it in turns):,.4g}" for key in turns[0]]
            print(f"{case:8} {label:24} {', '.join(cells)}", flush=True)
    if asked.json:
        with open(asked.json, "w") as file:
            json.dump(figures, file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
