"""What a program of rclpy takes: the same on tsuji's rclpy and on the real one.

    python rclpy_bench.py PYTHON…      each PYTHON is a command that runs a program of rclpy, such as "python -m tsuji.rclpy"

Two processes each: bytes there and back, and pictures of 2.36 MB at 30 Hz, from before `publish` until the callback has them. Prints median
and p99 in microseconds, the commands by turns.
"""

import os
import shlex
import statistics
import subprocess
import sys
import time

ROUNDS, PICTURES, TURNS = 2000, 150, 3


def program(role):
    import array

    import rclpy
    from rclpy.qos import QoSProfile
    from std_msgs.msg import UInt8MultiArray

    rclpy.init()
    node = rclpy.create_node(role)
    qos = QoSProfile(depth=10)
    if role == "echo":
        back = node.create_publisher(UInt8MultiArray, "back", qos)

        def answer(message):
            if len(message.data) < 1000:
                back.publish(message)
            else:
                back.publish(UInt8MultiArray(data=array.array("B", time.monotonic_ns().to_bytes(8, "little"))))

        node.create_subscription(UInt8MultiArray, "there", answer, qos)
        try:
            rclpy.spin(node)
        except rclpy.executors.ExternalShutdownException:
            # It is ended by SIGTERM.
            pass
        return
    heard = []
    node.create_subscription(UInt8MultiArray, "back", heard.append, qos)
    there = node.create_publisher(UInt8MultiArray, "there", qos)
    while not (there.get_subscription_count() and node.count_publishers("back")):
        rclpy.spin_once(node, timeout_sec=0.05)
    executor = rclpy.executors.SingleThreadedExecutor()
    executor.add_node(node)

    def ask(message):
        del heard[:]
        begin = time.monotonic_ns()
        there.publish(message)
        until = time.monotonic() + 5
        while not heard:
            executor.spin_once(timeout_sec=1)
            if until < time.monotonic():
                return None
        return begin, time.monotonic_ns(), heard[0]

    small = UInt8MultiArray(data=array.array("B", bytes(64)))
    trips = [it for _ in range(ROUNDS) if (it := ask(small))]
    said = [(end - begin) / 1000 for begin, end, _ in trips[200:]]
    pixels = array.array("B", bytes(1024 * 768 * 3))
    arrived = []
    for _ in range(PICTURES):
        answer = ask(UInt8MultiArray(data=pixels))
        if answer is not None:
            arrived.append((int.from_bytes(bytes(answer[2].data), "little") - answer[0]) / 1000)
        time.sleep(1 / 30)
    for of in (said, arrived[10:]):
        of.sort()
        print(statistics.median(of), of[int(len(of) * 0.99) - 1])
    rclpy.shutdown()


def main():
    commands = sys.argv[1:]
    found = {it: [] for it in commands}
    for _ in range(TURNS):
        for command in commands:
            words = [*shlex.split(command), os.path.abspath(__file__)]
            echo = subprocess.Popen([*words, "--role", "echo"])
            try:
                run = subprocess.run([*words, "--role", "ask"], capture_output=True, text=True, timeout=300)
                found[command].append([float(it) for it in run.stdout.split()])
            finally:
                echo.terminate()
                echo.wait()
    print(f"{'microseconds, median of turns: median / p99':50}{'64 B there and back':>24}{'2.36 MB one way':>24}")
    for command, turns in found.items():
        cells = [statistics.median(it[at] for it in turns) for at in range(4)]
        print(f"{command[-48:]:50}{f'{cells[0]:.0f} / {cells[1]:.0f}':>24}{f'{cells[2]:.0f} / {cells[3]:.0f}':>24}")


if __name__ == "__main__":
    if "--role" in sys.argv:
        program(sys.argv[sys.argv.index("--role") + 1])
    else:
        main()
