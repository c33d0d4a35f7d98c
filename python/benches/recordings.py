"""Measures reading a recording beside other packages, by turns in one run.

    python recordings.py                        tsuji alone
    python recordings.py --peer rosbags --peer mcap
                                                and those, which are to be installed beside it (rosbags, mcap-ros2-support)
    python recordings.py --file run.mcap        a recording of pictures of one's own, in place of those that are made

The recordings that are made have pictures of 2.36 MB: in chunks that are not packed, with checksums and without, and packed by zstd, of
which the file is as rosbag2 writes it but for its index. Each message is read, its picture taken as an array, or what the package has for it, and
its first byte and its last are looked at. Every reader is a process of its own; its first reading of the file is not measured. Figures are of the
time from one message to the next, over all turns.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEIGHT, WIDTH = 1024, 768


def by_tsuji(path, mapped=False):
    import tsuji

    for it in tsuji.open(path, mapped=mapped):
        yield it.message.data


def by_tsuji_mapped(path):
    return by_tsuji(path, mapped=True)


def by_rosbags(path):
    from rosbags.highlevel import AnyReader

    with AnyReader([Path(path)]) as reader:
        for connection, _, raw in reader.messages():
            yield reader.deserialize(raw, connection.msgtype).data


def by_mcap(path):
    from mcap_ros2.reader import read_ros2_messages

    for it in read_ros2_messages(path):
        yield it.ros_msg.data


READERS = {"tsuji": by_tsuji, "tsuji-mapped": by_tsuji_mapped, "rosbags": by_rosbags, "mcap": by_mcap}


def make(folder, pictures):
    """The recordings, by what is said of them."""
    import numpy
    import tsuji
    from tsuji.interfaces.sensor_msgs.msg import Image

    made = {}
    for name, compression in (("not packed", None), ("zstd", "zstd")):
        path = made[name] = folder / f"{compression}.mcap"
        with tsuji.RecordingWriter(path, compression=compression) as writer:
            for number in range(pictures):
                few = numpy.random.default_rng(number).integers(0, 255, HEIGHT * WIDTH * 3 // 4, dtype=numpy.uint8)
                picture = Image(height=HEIGHT, width=WIDTH, step=3 * WIDTH, encoding="rgb8", data=few.repeat(4))
                writer.write("/camera", picture, time_ns=10**18 + number * 33_333_333)
    path = made["not packed, no checksums"] = folder / "bare.mcap"
    path.write_bytes(without_checksums(made["not packed"].read_bytes()))
    return made


def without_checksums(file):
    """The same file, whose chunks and summary say that they have none: 0."""
    file, at = bytearray(file), 8
    while at < len(file) - 8:
        kind, length = file[at], int.from_bytes(file[at + 1 : at + 9], "little")
        body = at + 9
        if kind == 0x06:  # a chunk: after its two times and its size
            file[body + 24 : body + 28] = bytes(4)
        elif kind == 0x0F:  # the end of the data
            file[body : body + 4] = bytes(4)
        elif kind == 0x02:  # the footer: after two places
            file[body + 16 : body + 20] = bytes(4)
        at = body + length
    return file


def read(reader, path, turns):
    """Reads the file so many times and once before; prints how long each message took, in microseconds."""
    took, read = [], set()
    for _ in range(turns + 1):
        times, total = [time.perf_counter_ns()], 0
        for data in READERS[reader](path):
            total += int(data[0]) + int(data[-1])
            times.append(time.perf_counter_ns())
        took.append([(after - before) / 1e3 for before, after in zip(times, times[1:])])
        read.add((len(took[-1]), total))
    if len(read) != 1:
        raise RuntimeError(f"{reader} did not read the same each time")
    print(json.dumps({"us": sum(took[1:], []), "read": read.pop()}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="\n".join(__doc__.splitlines()[1:]), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="append", default=[], choices=["rosbags", "mcap"], help="what is measured beside tsuji")
    parser.add_argument("--file", type=Path, help="a recording of pictures, in place of those that are made")
    parser.add_argument("--pictures", type=int, default=100, help="how many each recording has (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=5, help="how often each reads it (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="where the figures go too")
    parser.add_argument("--as", dest="reader", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.reader:
        read(asked.reader, asked.file, 1)
        return 0
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        files = {asked.file.name: asked.file} if asked.file else make(Path(folder), asked.pictures)
        for name, path in files.items():
            found, seen = {}, set()
            for _ in range(asked.turns):
                for reader in ["tsuji", "tsuji-mapped", *asked.peer]:
                    words = [sys.executable, os.path.abspath(__file__), "--as", reader, "--file", str(path)]
                    said = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)
                    found.setdefault(reader, []).extend(said["us"])
                    seen.add(tuple(said["read"]))
            if len(seen) != 1:
                raise RuntimeError(f"{name}: they did not read the same")
            figures[name] = {reader: {"median": statistics.median(it), "p99": sorted(it)[int(len(it) * 0.99)]} for reader, it in found.items()}
            print(f"{name:26} {'microseconds':14} {'median':>9} {'p99':>9}")
            for reader, figure in figures[name].items():
                against = [figures[name][it]["median"] / figure["median"] for it in asked.peer if reader not in asked.peer]
                ratio = f"  {min(against):6.1f} times the fastest peer" if against else ""
                print(f"{'':26} {reader:14} {figure['median']:9.1f} {figure['p99']:9.1f}{ratio}", flush=True)
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
