"""What a row of the table stands on: a node in this process, `here`, and one in another process, `there`."""

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor

# How long a row waits for what must come.
DEADLINE = float(os.environ.get('WHEELS_DEADLINE', 20))
CHILD = os.path.join(os.path.dirname(__file__), 'child.py')


class Row:
    """A line of the table: what must hold, and the function that sees to it."""

    def __init__(self, text, check, processes, alone):
        self.text, self.check, self.processes, self.alone = text, check, processes, alone


def rows_of(module):
    """The rows of a module, in its order."""
    return importlib.import_module(module).__dict__.setdefault('ROWS', [])


def row(text, *, processes=2, alone=False):
    """Enters a function into the table of its module. `processes` is 2 where it needs another one than its own; what is `alone`
    asks something of rmw_tsuji that another middleware has not, or has in another way."""

    def enter(check):
        # A partial function has the module of functools.
        rows_of(getattr(check, 'func', check).__module__).append(Row(text, check, processes, alone or processes == 1))
        return check

    return enter


def until(condition, what, seconds=None):
    """Waits until `condition` holds, and returns what it gave."""
    seconds = DEADLINE if seconds is None else seconds
    ends = time.monotonic() + seconds
    while not (it := condition()):
        if time.monotonic() > ends:
            raise AssertionError(f'within {seconds:g} s not: {what}')
        time.sleep(0.002)
    return it


def expect(found, expected, what):
    """Fails where the two differ."""
    if found != expected:
        raise AssertionError(f'{what}: found {shortened(found)}, expected {shortened(expected)}')


def shortened(value):
    """A value in words that fit in a line."""
    text = repr(value)
    return text if len(text) < 300 else f'{text[:300]}…'


def result_of(future, what, seconds=None):
    """What a future comes to, while another thread spins."""
    until(future.done, what, seconds)
    return future.result()


def ready(client):
    """A client of a service or an action, once its server is there: rclpy's own functions for that look four times a second."""
    is_ready = getattr(client, 'service_is_ready', None) or client.server_is_ready
    until(is_ready, 'the server is there')
    return client


class Side:
    """A node, and the thread that spins it until it is closed. What functions remember of it is in `kept`."""

    def __init__(self, namespace, name, executor=None, node=None):
        self.node = node or rclpy.create_node(name, namespace=namespace)
        self.executor = executor or SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.kept = {}
        self.is_closing = False
        # What its thread ended by before it was closed.
        self.error = None
        self.thread = threading.Thread(target=self.spin)
        self.thread.start()

    def spin(self):
        try:
            while not self.is_closing:
                self.executor.spin_once(timeout_sec=1)
        except ExternalShutdownException:
            pass
        except Exception as error:
            self.error = error
            raise

    def call(self, function, *arguments):
        """What a function returns in the thread that spins, between two callbacks."""
        task = self.executor.create_task(function, *arguments)
        return result_of(task, f'{function.__qualname__} returns')

    def close(self):
        # Before the executor ends: one of Kilted that is waiting when it is shut down may go on waiting, on any middleware.
        self.is_closing = True
        # An executor that is only woken waits on for the rest of its second.
        self.executor.create_task(lambda: None)
        self.thread.join()
        self.executor.shutdown()
        self.node.destroy_node()


class Other:
    """Another process, which runs functions of the row's module on a node of its own."""

    def __init__(self, module, namespace, environment, name='there'):
        self.process = subprocess.Popen(
            [sys.executable, CHILD, 'serve', module], env=environment, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.asked = 0
        self.begin(namespace, name)

    def begin(self, namespace, name='there'):
        """Gives it a new node."""
        self.ask({'namespace': namespace, 'name': name})

    def __call__(self, function, *arguments, seconds=None):
        """What a function of the module returns there."""
        return self.ask({'function': function.__name__, 'arguments': arguments}, seconds)

    def ask(self, words, seconds=None):
        try:
            self.process.stdin.write(json.dumps(words) + '\n')
        except BrokenPipeError:
            raise AssertionError(f'the other process has ended with {self.process.wait()}') from None
        seconds = 2 * DEADLINE + 10 if seconds is None else seconds
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            raise AssertionError(f'the other process does not answer within {seconds:g} s: {words}')
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f'the other process ended with {self.process.wait()} in {words}')
        answer = json.loads(line)
        if 'error' in answer:
            raise AssertionError(f'there: {answer["error"]}')
        return answer['value']

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self):
        """Lets it end by itself; fails where it does not."""
        self.process.stdin.close()
        try:
            status = self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError('the other process does not end') from None
        expect(status, 0, 'how the other process ended')


def program(module, name, environment=None):
    """Starts a function of a module as a program of its own, on this side's middleware."""
    return subprocess.Popen(
        [sys.executable, CHILD, 'program', module, name], env=environment or dict(os.environ), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class Scene:
    """The two sides of a row, each made when it is first asked for."""

    def __init__(self, module):
        self.module = module
        self.number = 0
        self._here = self._there = None
        self._there_has_node = False

    @property
    def namespace(self):
        """Of both sides' nodes, and of no other row's."""
        return f'/row_{self.number}'

    @property
    def here(self):
        if self._here is None:
            self._here = Side(self.namespace, 'here')
        return self._here

    @property
    def there(self):
        if self._there is None:
            self._there = self.other('there')
        elif not self._there_has_node:
            self._there.begin(self.namespace)
        self._there_has_node = True
        return self._there

    def other(self, name):
        """One more process on the other middleware, which the row ends."""
        return Other(self.module, self.namespace, environment_there(), name)

    def ended_by(self):
        """Words for what ended the thread of this side, where it ended by itself."""
        error = self._here and self._here.error
        return f'; the thread that spins has ended: {type(error).__name__}: {error}' if error else ''

    def next_row(self):
        """Forgets the nodes of the row before."""
        if self._here:
            self._here.close()
        if self._there and self._there.process.poll() is not None:
            self._there = None
        self._here, self._there_has_node = None, False
        self.number += 1

    def close(self):
        self.next_row()
        if self._there:
            self._there.end()


def middlewares():
    """That of this side and of the other."""
    return os.environ['RMW_IMPLEMENTATION'], environment_there()['RMW_IMPLEMENTATION']


def environment_there():
    """That of a process on the middleware of the other side."""
    environment = dict(os.environ)
    for name, value in json.loads(os.environ['WHEELS_THERE']).items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value
    return environment
