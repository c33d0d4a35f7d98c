"""Topics: what is published here is heard there, as the QoS of both says."""

import functools
import hashlib

import rclpy
from rclpy.duration import Duration
from rclpy.time import Time
from std_msgs.msg import String, UInt8MultiArray

from rows.qos import BEST_EFFORT, EVERY, LATCHED, profile, qos
from scene import expect, row, until

MESSAGES = 20
# So many seconds a picture by best effort may take before it is taken to be lost.
SOON = 0.5
# 1024 × 768 pixels of three bytes.
PICTURE = bytes(range(256)) * (1024 * 768 * 3 // 256)


def listen(side, topic, words):
    """Hears the texts of a topic from now on."""
    heard = side.kept[topic] = []
    subscription = side.node.create_subscription(String, topic, lambda it: heard.append(it.data), profile(words))
    side.kept[f'{topic} subscription'] = subscription


def heard(side, topic, count=0, seconds=None):
    """What was heard, once that is so much."""
    texts = side.kept[topic]
    until(lambda: len(texts) >= count, f'{count} messages on {topic}; heard were {texts[:30]}', seconds)
    return list(texts)


def heard_soon(side, topic, count):
    """What was heard, once that is so much or a while has passed."""
    try:
        return heard(side, topic, count, SOON)
    except AssertionError:
        return list(side.kept[topic])


def publishers(side, topic, count):
    """Waits until there are so many publishers."""
    until(lambda: side.node.count_publishers(topic) == count, f'{count} publishers of {topic}')


def publisher_that_has_met(scene, words, there_words=None):
    """One here of a topic to which the other side listens, both knowing of it."""
    publisher = scene.here.node.create_publisher(String, 'chatter', profile(words))
    scene.there(listen, 'chatter', there_words or words)
    until(lambda: publisher.get_subscription_count() == 1, 'the subscription is matched')
    scene.there(publishers, 'chatter', 1)
    return publisher


def publish_until_heard(scene, publisher, count):
    """Publishes one at a time until so many are heard, and returns what was: for what may be lost."""
    texts, number = [], 0
    while len(texts) < count:
        publisher.publish(String(data=str(number)))
        number += 1
        texts = scene.there(heard, 'chatter')
        if number > 1000 * count:
            raise AssertionError(f'{len(texts)} of {number} were heard')
    return texts


def check_qos(scene, words):
    publisher = publisher_that_has_met(scene, words)
    if words['reliability'] == 'BEST_EFFORT':
        numbers = [int(it) for it in publish_until_heard(scene, publisher, MESSAGES)]
        expect(numbers, sorted(set(numbers)), 'each once and in order')
        return
    # What is published before the reader itself has matched is its own only if it is kept for late joiners.
    first = int(publish_until_heard(scene, publisher, 1)[-1]) + 1
    for number in range(first, first + MESSAGES):
        publisher.publish(String(data=str(number)))
    scene.there(heard, 'chatter', 1)
    expected = [str(it) for it in range(first, first + MESSAGES)]
    until(lambda: scene.there(heard, 'chatter')[-1] == expected[-1], f'the last one, {expected[-1]}')
    expect(scene.there(heard, 'chatter')[-MESSAGES:], expected, 'the messages')


for name, words in EVERY:
    row(name)(functools.partial(check_qos, words=words))


@row('best effort hears reliable')
def _(scene):
    publisher = publisher_that_has_met(scene, qos(), BEST_EFFORT)
    publish_until_heard(scene, publisher, MESSAGES)


@row('reliable does not hear best effort')
def _(scene):
    apart = scene.here.node.create_publisher(String, 'apart', profile(BEST_EFFORT))
    scene.there(listen, 'apart', qos())
    # Once another pair has met, this one would have as well.
    publisher = publisher_that_has_met(scene, qos())
    for number in range(MESSAGES):
        apart.publish(String(data=str(number)))
    publish_until_heard(scene, publisher, MESSAGES)
    expect(apart.get_subscription_count(), 0, 'subscriptions of what does not fit')
    expect(scene.there(heard, 'apart'), [], 'heard of what does not fit')


@row('latched to a late joiner, all')
def _(scene):
    publisher = scene.here.node.create_publisher(String, 'chatter', profile(LATCHED))
    for number in range(MESSAGES):
        publisher.publish(String(data=str(number)))
    scene.there(listen, 'chatter', LATCHED)
    expect(scene.there(heard, 'chatter', MESSAGES), [str(it) for it in range(MESSAGES)], 'the messages kept')
    publisher.publish(String(data='new'))
    expect(scene.there(heard, 'chatter', MESSAGES + 1)[-1], 'new', 'the message after them')


@row('latched to a late joiner, the last 3')
def _(scene):
    publisher = scene.here.node.create_publisher(String, 'chatter', profile(dict(LATCHED, depth=3)))
    for number in range(MESSAGES):
        publisher.publish(String(data=str(number)))
    scene.there(listen, 'chatter', LATCHED)
    last = [str(it) for it in range(MESSAGES - 3, MESSAGES)]
    expect(scene.there(heard, 'chatter', 3), last, 'the messages kept')


@row('volatile to a late joiner')
def _(scene):
    publisher = scene.here.node.create_publisher(String, 'chatter', profile(LATCHED))
    publisher.publish(String(data='old'))
    scene.there(listen, 'chatter', qos())
    until(lambda: publisher.get_subscription_count() == 1, 'the subscription is matched')
    scene.there(publishers, 'chatter', 1)
    texts = publish_until_heard(scene, publisher, 1)
    expect('old' in texts, False, 'what was published before is heard')


def look(side, topic, words):
    """Sees the pictures of a topic: the digest of each is kept."""
    seen = side.kept[topic] = []
    side.kept[f'{topic} subscription'] = side.node.create_subscription(
        UInt8MultiArray, topic, lambda it: seen.append(hashlib.sha256(it.data).hexdigest()), profile(words))


def check_pictures(scene, words, count, all_of_them):
    publisher = scene.here.node.create_publisher(UInt8MultiArray, 'picture', profile(words))
    scene.there(look, 'picture', words)
    until(lambda: publisher.get_subscription_count() == 1, 'the subscription is matched')
    scene.there(publishers, 'picture', 1)
    pictures = [bytes([it]) + PICTURE[1:] for it in range(count)]
    digests = [hashlib.sha256(it).hexdigest() for it in pictures]
    if all_of_them:
        for picture in pictures:
            publisher.publish(UInt8MultiArray(data=picture))
        expect(scene.there(heard, 'picture', count), digests, 'the pictures')
        return
    # rmw_tsuji waits for sockets that are small; busy machines lose some of it all the same.
    attempts = (4 if rclpy.get_rmw_implementation_identifier() == 'rmw_tsuji' else 50) * count
    seen = []
    for attempt in range(attempts):
        publisher.publish(UInt8MultiArray(data=pictures[attempt % count]))
        seen = scene.there(heard_soon, 'picture', len(seen) + 1)
        if len(seen) >= count:
            expect(set(seen) <= set(digests), True, 'each picture is whole')
            return
    raise AssertionError(f'{len(seen)} of {attempts} pictures arrived')


@row('pictures of 2.36 MB, reliable')
def _(scene):
    check_pictures(scene, qos(), 10, all_of_them=True)


@row('pictures of 2.36 MB, best effort')
def _(scene):
    check_pictures(scene, BEST_EFFORT, 5, all_of_them=False)


@row('a picture of 2.36 MB, latched')
def _(scene):
    publisher = scene.here.node.create_publisher(UInt8MultiArray, 'picture', profile(dict(LATCHED, depth=1)))
    publisher.publish(UInt8MultiArray(data=PICTURE))
    scene.there(look, 'picture', dict(LATCHED, depth=1))
    expect(scene.there(heard, 'picture', 1), [hashlib.sha256(PICTURE).hexdigest()], 'the picture kept')


def listen_with_info(side, topic):
    """Keeps what comes with each message."""
    infos = side.kept[topic] = []

    def hear(message, info):
        infos.append({'data': message.data, **{key: info[key] for key in ('source_timestamp', 'received_timestamp')}})

    side.kept[f'{topic} subscription'] = side.node.create_subscription(String, topic, hear, profile(qos()))


@row('when it was published and received')
def _(scene):
    publisher = scene.here.node.create_publisher(String, 'chatter', profile(qos()))
    scene.there(listen_with_info, 'chatter')
    until(lambda: publisher.get_subscription_count() == 1, 'the subscription is matched')
    scene.there(publishers, 'chatter', 1)
    clock = scene.here.node.get_clock()
    before = clock.now()
    infos = publish_until_heard(scene, publisher, 3)
    after = clock.now()
    for info in infos:
        for key in 'source_timestamp', 'received_timestamp':
            expect(before <= Time(nanoseconds=info[key], clock_type=clock.clock_type) <= after, True, f'{key} is within the row')


@row('all of a publisher are acknowledged')
def _(scene):
    publisher = publisher_that_has_met(scene, qos())
    for number in range(MESSAGES):
        publisher.publish(String(data=str(number)))
    expect(publisher.wait_for_all_acked(Duration(seconds=20)), True, 'all acknowledged')


@row('several publishers and subscriptions')
def _(scene):
    publishers_here = [scene.here.node.create_publisher(String, 'chatter', profile(LATCHED)) for _ in range(3)]
    own = []
    for _ in range(2):
        scene.here.node.create_subscription(String, 'chatter', lambda it: own.append(it.data), profile(LATCHED))
    scene.there(listen, 'chatter', LATCHED)
    for index, publisher in enumerate(publishers_here):
        for number in range(MESSAGES):
            publisher.publish(String(data=f'{index}.{number}'))
    everything = sorted(f'{index}.{number}' for index in range(3) for number in range(MESSAGES))
    expect(sorted(scene.there(heard, 'chatter', 3 * MESSAGES)), everything, 'heard there')
    until(lambda: len(own) >= 6 * MESSAGES, 'the same is heard here, twice')
    expect(sorted(own), sorted(2 * everything), 'heard here')


@row('an endpoint that comes back')
def _(scene):
    scene.there(listen, 'chatter', qos())
    for time in range(5):
        publisher = scene.here.node.create_publisher(String, 'chatter', profile(qos()))
        until(lambda: publisher.get_subscription_count() == 1, 'the subscription is matched')
        scene.there(publishers, 'chatter', 1)
        before = len(scene.there(heard, 'chatter'))
        publish_until_heard(scene, publisher, before + 1)
        scene.here.node.destroy_publisher(publisher)
        scene.there(publishers, 'chatter', 0)
