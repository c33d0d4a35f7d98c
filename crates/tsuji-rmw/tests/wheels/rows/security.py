"""Programs of rclpy that a keystore of SROS2 secures: the one that SROS2 itself has made, of crates/tsuji-security/tests/data."""

import os
import tempfile

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.parameter import Parameter
from std_msgs.msg import String

from scene import DEADLINE, expect, program, row

KEYSTORE = os.path.join(os.path.dirname(__file__), '../../../../tsuji-security/tests/data/sros2')


class World:
    """A run-time folder of its own, in the domain that the keystore is for."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.running = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for it in self.running:
            it.kill()
            it.communicate()
        self.folder.cleanup()

    def start(self, name, enclave=None):
        """A program, in an enclave of the talker and the listener or in clear."""
        environment = {**os.environ, 'TSUJI_RUNTIME_DIR': self.folder.name, 'ROS_DOMAIN_ID': '0', 'PYTHONUNBUFFERED': '1'}
        if enclave:
            environment.update(
                ROS_SECURITY_ENABLE='true', ROS_SECURITY_STRATEGY='Enforce', ROS_SECURITY_KEYSTORE=os.path.abspath(KEYSTORE),
                ROS_SECURITY_ENCLAVE_OVERRIDE=f'/talker_listener/{enclave}')
        self.running.append(program(__name__, name, environment))
        return self.running[-1]


def node(name):
    # The policy of SROS2 is older than the service that describes types.
    return rclpy.create_node(
        name, parameter_overrides=[Parameter('start_type_description_service', Parameter.Type.BOOL, False)])


def talker():
    rclpy.init()
    it = node('talker')
    publisher = it.create_publisher(String, 'chatter', 10)
    try:
        it.create_publisher(String, 'other', 10)
    except Exception as error:  # whatever rclpy makes of it
        print(error, flush=True)
    it.create_timer(0.05, lambda: publisher.publish(String(data='hello')))
    try:
        rclpy.spin(it)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass


def listener():
    rclpy.init()
    it, heard = node('listener'), []
    it.create_subscription(String, 'chatter', lambda said: heard.append(said.data), 10)
    while not heard:
        rclpy.spin_once(it)
    print(heard[0], flush=True)


def publishers_of_chatter():
    """How many there are, once this process is sure of it."""
    rclpy.init()
    it = node('counter')
    publisher = it.create_publisher(String, 'own', 10)
    it.create_subscription(String, 'own', lambda _: None, 10)
    while publisher.get_subscription_count() < 1:
        rclpy.spin_once(it, timeout_sec=0.1)
    print(it.count_publishers('chatter'), flush=True)


@row('two programs are secured by a keystore of SROS2', alone=True)
def _(_scene):
    with World() as world:
        talking = world.start('talker', 'talker')
        hearing = world.start('listener', 'listener')
        out, said = hearing.communicate(timeout=2 * DEADLINE)
        expect((out.strip(), hearing.returncode), ('hello', 0), f'what is heard: {said[-500:]}')
        refused = talking.stdout.readline()
        for word in 'the enclave "/talker_listener/talker" may not publish rt/other', 'no rule of grant':
            expect(word in refused, True, f'whether {word} is in: {refused}')
        # One in clear sees nothing of them.
        out, said = world.start('publishers_of_chatter').communicate(timeout=2 * DEADLINE)
        expect(out.strip(), '0', f'publishers seen in clear: {said[-500:]}')
        expect(talking.poll(), None, 'how the talker has ended')


@row('a program without an enclave does not start', processes=1)
def _(_scene):
    with World() as world:
        out, said = world.start('listener', 'nobody').communicate(timeout=2 * DEADLINE)
        expect('SECURITY ERROR' in said and 'nobody' in said, True, f'whether rcl refuses it: {out} {said[-500:]}')
