"""Measures the package beside itself: pictures at 30 Hz between two processes, and round trips of 64 bytes.

    python benches/bench.py [--seconds 10] [--json FILE]

Pictures have 2.36 MB. Their latency is from before they are filled (a loan) or published (an array) to the array in hand, on the
monotonic clock that both processes share. A round trip is a message there and one back, one at a time.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import sys
import tempfile
import time

import numpy

import tsuji
from tsuji.interfaces.sensor_msgs.msg import Image
from tsuji.interfaces.std_msgs.msg import UInt8MultiArray

HEIGHT, WIDTH, RATE_HZ = 1024, 768, 30
QOS = tsuji.QoS(5)


def node(name, folder):
    return tsuji.Node(name, interop="none", runtime_dir=folder)


def stamp():
    return time.monotonic_ns()


def film(folder, by_loan, seconds):
    """Publishes pictures, each with the time when it was begun."""
    with node("camera", folder) as camera:
        publisher = camera.publisher("image", Image, QOS)
        publisher.wait_for_subscriptions(timeout=30)
        frame = numpy.full(HEIGHT * WIDTH * 3, 7, dtype=numpy.uint8)
        due = time.monotonic()
        for _ in range(int(seconds * RATE_HZ)):
            due += 1 / RATE_HZ
            time.sleep(max(0.0, due - time.monotonic()))
            begun = str(stamp())
            if by_loan:
                with publisher.loan(height=HEIGHT, width=WIDTH, encoding="rgb8", header=header(begun)) as picture:
                    picture.data[:8] = 9
            else:
                publisher.publish(Image(height=HEIGHT, width=WIDTH, encoding="rgb8", header=header(begun), data=frame))
        publisher.wait_for_acknowledgements(timeout=30)


def header(frame_id):
    from tsuji.interfaces.std_msgs.msg import Header

    return Header(frame_id=frame_id)


def pictures(by_loan, seconds):
    with tempfile.TemporaryDirectory(prefix="tsuji-") as folder, node("viewer", folder) as viewer:
        subscription = viewer.subscribe("image", Image, QOS)
        camera = multiprocessing.get_context("spawn").Process(target=film, args=(folder, by_loan, seconds))
        camera.start()
        took = []
        while True:
            try:
                picture = subscription.recv(timeout=2 if took else 30)
            except TimeoutError:
                break
            data = picture.data
            took.append((stamp() - int(picture.header.frame_id)) / 1e6)
            assert data[-1] in (0, 7)
        camera.join()
    warm = sorted(took[RATE_HZ:])
    return {"median_ms": statistics.median(warm), "p99_ms": warm[int(len(warm) * 0.99)], "pictures": len(took)}


def echo(folder):
    with node("echo", folder) as there:
        subscription, publisher = there.subscribe("there", UInt8MultiArray, QOS), there.publisher("back", UInt8MultiArray, QOS)
        for message in subscription:
            if not len(message.data):
                return
            publisher.publish(message)


def round_trips(by_asyncio, seconds):
    with tempfile.TemporaryDirectory(prefix="tsuji-") as folder, node("asks", folder) as here:
        subscription, publisher = here.subscribe("back", UInt8MultiArray, QOS), here.publisher("there", UInt8MultiArray, QOS)
        other = multiprocessing.get_context("spawn").Process(target=echo, args=(folder,))
        other.start()
        publisher.wait_for_subscriptions(timeout=30)
        subscription.wait_for_publishers(timeout=30)
        message = UInt8MultiArray(data=bytes(44))

        def count():
            done, until = 0, time.monotonic() + seconds
            while time.monotonic() < until:
                publisher.publish(message)
                subscription.recv(timeout=10)
                done += 1
            return done

        async def count_async():
            done, until = 0, time.monotonic() + seconds
            messages = aiter(subscription)
            while time.monotonic() < until:
                publisher.publish(message)
                await anext(messages)
                done += 1
            return done

        done = asyncio.run(count_async()) if by_asyncio else count()
        publisher.publish(data=b"")
        other.join()
    return {"a_second": done / seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each is measured (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="where the figures go too")
    asked = parser.parse_args()
    figures = {
        "pictures from a loan": pictures(True, asked.seconds),
        "pictures from an array": pictures(False, asked.seconds),
        "round trips, blocking": round_trips(False, asked.seconds),
        "round trips, asyncio": round_trips(True, asked.seconds),
    }
    for name, of in figures.items():
        print(f"{name:24}", ", ".join(f"{key} {value:.4g}" for key, value in of.items()))
    if asked.json:
        with open(asked.json, "w") as file:
            json.dump(figures, file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
