"""Messages: one of each type of test_msgs, with each of its values, goes there and comes back as it was."""

import functools
import hashlib
import importlib

import test_msgs.msg
from rclpy.serialization import deserialize_message, serialize_message
from test_msgs import message_fixtures

from rows.qos import LATCHED, profile
from scene import expect, middlewares, row, until

TYPES = sorted(name for name in vars(test_msgs.msg) if name[0].isupper())


def type_of(name):
    return getattr(test_msgs.msg, name)


def values(name):
    """The values that test_msgs itself tests with; of types that have none there, the first value and one that is filled."""
    try:
        found = message_fixtures.get_test_msg(name)
    except TypeError:
        found = None
    if found:
        return found
    plain, filled = type_of(name)(), type_of(name)()
    fill(filled)
    return [plain, filled]


def fill(message):
    """Gives numbers and texts of a message values of their own."""
    for number, (field, kind) in enumerate(message.get_fields_and_field_types().items(), 1):
        if kind == 'string':
            setattr(message, field, f'text {number}')
        elif kind == 'octet':
            setattr(message, field, bytes([number]))
        elif kind.startswith(('int', 'uint')):
            setattr(message, field, number)
        elif '/' in kind and not kind.endswith(('>', ']')):
            fill(getattr(message, field))


def echo(side, name):
    """Sends back what comes of a type."""
    publisher = side.node.create_publisher(type_of(name), 'back', profile(LATCHED))
    side.kept['echo'] = side.node.create_subscription(type_of(name), 'forth', publisher.publish, profile(LATCHED))


def check_type(scene, name):
    sent, back = values(name), []
    scene.here.node.create_subscription(type_of(name), 'back', back.append, profile(LATCHED))
    publisher = scene.here.node.create_publisher(type_of(name), 'forth', profile(LATCHED))
    for message in sent:
        publisher.publish(message)
    scene.there(echo, name)
    until(lambda: len(back) >= len(sent), f'{len(sent)} messages have come back; {len(back)} have')
    if 'Key' in name:
        # Those of different keys may overtake each other.
        back.sort(key=repr)
        sent.sort(key=repr)
    expect(back, sent, 'the messages that came back')


for name in TYPES:
    row(name)(functools.partial(check_type, name=name))


def serialised(_, name):
    """The bytes of each value of a type, in hexadecimal digits."""
    return [serialize_message(it).hex() for it in values(name)]


def check_serialised(scene, name):
    digits = scene.there(serialised, name)
    for value, theirs in zip(values(name), digits, strict=True):
        ours = serialize_message(value)
        expect(deserialize_message(ours, type_of(name)), value, 'the message of the bytes from here')
        expect(deserialize_message(bytes.fromhex(theirs), type_of(name)), value, 'the message of the bytes from there')
        # Between values rmw_fastrtps leaves what was there before, and rmw_tsuji writes zeros.
        pairs = zip(ours, bytes.fromhex(theirs))
        if 'rmw_tsuji' in middlewares():
            expect([it for it in pairs if it[0] != it[1] and 0 not in it], [], 'bytes of values that differ')


for name in TYPES:
    row(f'{name}, serialised')(functools.partial(check_serialised, name=name))


def listen_raw(side, name):
    """Keeps the bytes of what comes of a type."""
    raw = side.kept['raw'] = []
    side.kept['listener'] = side.node.create_subscription(
        type_of(name), 'raw', lambda it: raw.append(it.hex()), profile(LATCHED), raw=True)


def heard_raw(side, count):
    until(lambda: len(side.kept['raw']) >= count, f'{count} messages in bytes')
    return side.kept['raw']


@row('published and taken as bytes')
def _(scene):
    name = 'UnboundedSequences'
    sent = values(name)
    publisher = scene.here.node.create_publisher(type_of(name), 'raw', profile(LATCHED))
    for message in sent:
        publisher.publish(message)
        publisher.publish(serialize_message(message))
    scene.there(listen_raw, name)
    digits = scene.there(heard_raw, 2 * len(sent))
    back = [deserialize_message(bytes.fromhex(it), type_of(name)) for it in digits]
    expect(back, [it for message in sent for it in (message, message)], 'the messages of the bytes')


@row('bytes that are no message', processes=1)
def _(scene):
    for data in b'', b'\x00', b'\x00\x01\x00\x00', b'\x00\x01\x00\x00\xff\xff\xff\xff', hashlib.sha512(b'noise').digest():
        try:
            deserialize_message(data, type_of('Strings'))
        except Exception as error:  # which one it is, rclpy decides
            expect(bool(str(error)), True, 'the error says something')
        else:
            raise AssertionError(f'{data!r} was taken for a message')


@row('the types of std_msgs', processes=1)
def _(scene):
    module = importlib.import_module('std_msgs.msg')
    for name in sorted(it for it in vars(module) if it[0].isupper()):
        kind = getattr(module, name)
        message = kind()
        fill(message)
        expect(deserialize_message(serialize_message(message), kind), message, name)
