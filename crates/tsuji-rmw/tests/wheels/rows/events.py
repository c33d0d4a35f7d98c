"""Events of QoS: what each side is told of the other."""

from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from std_msgs.msg import String, UInt8MultiArray

from rows.qos import BEST_EFFORT, profile, qos
from scene import expect, row, until

KINDS = {'String': String, 'UInt8MultiArray': UInt8MultiArray}


def recorder(told, *names):
    """Callbacks that note each event under its name."""

    def callback(name):
        def note(info):
            told.append((name, {key: plain(getattr(info, key)) for key in dir(info) if key[0] != '_'}))

        return note

    return {name: callback(name) for name in names}


def plain(value):
    return value if isinstance(value, (int, str)) else getattr(value, 'name', str(value))


def publish(side, words, *names):
    """A publisher whose events are noted."""
    told = side.kept['told of publisher'] = []
    side.kept['publisher'] = side.node.create_publisher(
        String, 'chatter', profile(words),
        event_callbacks=PublisherEventCallbacks(use_default_callbacks=False, **recorder(told, *names)))


def say(side, text='said'):
    side.kept['publisher'].publish(String(data=text))


def subscribe(side, words, *names, kind='String'):
    """A subscription whose events are noted."""
    told, heard = side.kept['told of subscription'], side.kept['heard'] = [], []
    side.kept['subscription'] = side.node.create_subscription(
        KINDS[kind], 'chatter', heard.append, profile(words),
        event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False, **recorder(told, *names)))


def subscribe_to_arrays(side, *names):
    subscribe(side, qos(), *names, kind='UInt8MultiArray')


def heard(side):
    until(lambda: side.kept['heard'], 'a message')


def told(side, end, name, **fields):
    """Waits for an event of that name with those fields, or more of a number."""

    def fits(event):
        return event[0] == name and all(
            event[1][key] >= value if key.startswith('total') else event[1][key] == value for key, value in fields.items())

    events = side.kept[f'told of {end}']
    until(lambda: any(fits(it) for it in list(events)), f'the {end} is told of {name} with {fields}; it was told of {events[-5:]}')


def leave(side, end):
    getattr(side.node, f'destroy_{end}')(side.kept.pop(end))


@row('matched, and left')
def _(scene):
    publish(scene.here, qos(), 'matched')
    scene.there(subscribe, qos(), 'matched')
    told(scene.here, 'publisher', 'matched', current_count=1, total_count=1)
    scene.there(told_matched, 1)
    scene.there(leave, 'subscription')
    told(scene.here, 'publisher', 'matched', current_count=0, current_count_change=-1)
    scene.there(subscribe, qos(), 'matched')
    told(scene.here, 'publisher', 'matched', current_count=1, total_count=2)
    scene.there(told_matched, 1)
    leave(scene.here, 'publisher')
    scene.there(told_matched, 0)


def told_matched(side, count):
    told(side, 'subscription', 'matched', current_count=count)


@row('reliability that does not fit')
def _(scene):
    publish(scene.here, BEST_EFFORT, 'incompatible_qos')
    scene.there(subscribe, qos(), 'incompatible_qos')
    told(scene.here, 'publisher', 'incompatible_qos', last_policy_kind='RMW_QOS_POLICY_RELIABILITY', total_count=1)
    scene.there(told_of_policy, 'RMW_QOS_POLICY_RELIABILITY')


@row('durability that does not fit')
def _(scene):
    publish(scene.here, qos(), 'incompatible_qos')
    scene.there(subscribe, qos(durability='TRANSIENT_LOCAL'), 'incompatible_qos')
    told(scene.here, 'publisher', 'incompatible_qos', last_policy_kind='RMW_QOS_POLICY_DURABILITY', total_count=1)
    scene.there(told_of_policy, 'RMW_QOS_POLICY_DURABILITY')


def told_of_policy(side, policy):
    told(side, 'subscription', 'incompatible_qos', last_policy_kind=policy, total_count=1)


@row('deadlines missed')
def _(scene):
    words = qos(deadline=0.1)
    publish(scene.here, words, 'deadline')
    scene.there(subscribe, words, 'deadline')
    until(lambda: scene.here.kept['publisher'].get_subscription_count() == 1, 'the subscription is matched')
    say(scene.here)
    told(scene.here, 'publisher', 'deadline', total_count=3)
    scene.there(told_of_deadlines)


def told_of_deadlines(side):
    told(side, 'subscription', 'deadline', total_count=3)


@row('liveliness by topic, lost and back')
def _(scene):
    words = qos(liveliness='MANUAL_BY_TOPIC', lease=0.3)
    publish(scene.here, words, 'liveliness')
    scene.there(subscribe, words, 'liveliness')
    until(lambda: scene.here.kept['publisher'].get_subscription_count() == 1, 'the subscription is matched')
    say(scene.here)
    scene.there(told_of_liveliness, 1, 0)
    told(scene.here, 'publisher', 'liveliness', total_count=1)
    scene.there(told_of_liveliness, 0, 1)
    scene.there(forget)
    scene.here.kept['publisher'].assert_liveliness()
    scene.there(told_of_liveliness, 1, 0)
    scene.there(told_of_liveliness, 0, 1)
    scene.there(forget)
    say(scene.here)
    scene.there(told_of_liveliness, 1, 0)


def told_of_liveliness(side, alive, not_alive):
    told(side, 'subscription', 'liveliness', alive_count=alive, not_alive_count=not_alive)


def forget(side):
    side.kept['told of subscription'].clear()


@row('automatic liveliness, until it leaves')
def _(scene):
    words = qos(liveliness='AUTOMATIC', lease=1.0)
    publish(scene.here, words)
    scene.there(subscribe, words, 'liveliness')
    scene.there(told_of_liveliness, 1, 0)
    leave(scene.here, 'publisher')
    scene.there(told_of_liveliness, 0, 0)


@row('a type that does not fit', alone=True)
def _(scene):
    publish(scene.here, qos(), 'incompatible_type')
    scene.there(subscribe_to_arrays, 'incompatible_type')
    told(scene.here, 'publisher', 'incompatible_type')
    scene.there(told_of_type)


def told_of_type(side):
    told(side, 'subscription', 'incompatible_type')


@row('lifespan: what is old is not kept')
def _(scene):
    publish(scene.here, qos(durability='TRANSIENT_LOCAL', lifespan=0.2))
    say(scene.here)
    began = scene.here.node.get_clock().now()
    until(lambda: (scene.here.node.get_clock().now() - began).nanoseconds > 0.4e9, 'time passes')
    scene.there(subscribe, qos(durability='TRANSIENT_LOCAL'))
    until(lambda: scene.here.kept['publisher'].get_subscription_count() == 1, 'the subscription is matched')
    say(scene.here, 'new')
    scene.there(heard)
    expect(scene.there(texts), ['new'], 'what is heard')


def texts(side):
    return [it.data for it in side.kept['heard']]
