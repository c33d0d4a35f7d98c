"""The article's two clients, told what to do by lines: by TCP with a socket, by WebSocket with autobahn's loop of asyncio.

What they show goes nowhere, since a terminal would be measured as well; the time in a text follows from its number.
"""

import asyncio
import json
import os
import socket
import sys
import time

SPEC = json.loads(sys.argv[2])
HOST, PORT = SPEC["address"].rsplit(":", 1)
TOPIC = SPEC["topic"]
SCREEN = open(os.devnull, "w")


def answer(value):
    print(json.dumps(value), flush=True)


def told():
    """How many to publish, or nothing any more."""
    for line in sys.stdin:
        word, count = line.split()
        if word == "publish":
            return int(count)
        answer({"made": True})
    return None


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def message(number, comma):
    second, part = 1_600_000_000 + number // 10_000, 1_000_000 + number % 10_000
    data = "hello, {0}{1} {2}.{3}".format(number, comma, second, part)
    text = json.dumps({"op": "publish", "topic": TOPIC, "msg": {"data": data}})
    return data, text.encode("utf-8")


def advertise():
    return json.dumps({"op": "advertise", "topic": TOPIC, "type": "std_msgs/String"}).encode("utf-8")


def by_tcp():
    stream = socket.socket()
    stream.connect((HOST, int(PORT)))
    stream.send(advertise())
    time.sleep(0.5)
    answer({"open": True})
    count = told()
    if count is None:
        return
    began = now()
    for number in range(count):
        data, text = message(number, ",")
        stream.send(text)
        print(data, file=SCREEN)
    sent = now()
    stream.close()
    answer({"began": began, "sent": sent})
    told()


def by_websocket():
    from autobahn.asyncio.websocket import WebSocketClientFactory, WebSocketClientProtocol

    class Client(WebSocketClientProtocol):
        number = 0

        def onOpen(self):
            self.sendMessage(advertise())
            time.sleep(0.5)
            answer({"open": True})
            self.count = told()
            if self.count is None:
                self.factory.loop.stop()
                return
            self.began = now()
            self.say()

        def say(self):
            data, text = message(self.number, "")
            self.sendMessage(text)
            print(data, file=SCREEN)
            self.number += 1
            if self.number >= self.count:
                answer({"began": self.began, "sent": now()})
                # It stays connected, and what it has written is sent meanwhile.
                self.factory.loop.run_in_executor(None, self.wait)
                return
            self.factory.loop.call_later(0, self.say)

        def wait(self):
            told()
            os._exit(0)

        def onClose(self, wasClean, code, reason):
            answer({"failed": "the bridge has closed the connection: %s" % reason})
            os._exit(1)

    factory = WebSocketClientFactory("ws://{0}:{1}".format(HOST, PORT))
    factory.protocol = Client
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    factory.loop = loop
    loop.run_until_complete(loop.create_connection(factory, HOST, int(PORT)))
    loop.run_forever()


try:
    by_websocket() if SPEC["protocol"] == "websocket" else by_tcp()
except OSError as error:
    answer({"failed": str(error)})
    sys.exit(1)
