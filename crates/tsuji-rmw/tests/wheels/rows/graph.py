"""The graph: what one side has, the other sees, and sees it go."""

from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from rclpy.topic_endpoint_info import TopicEndpointTypeEnum
from std_msgs.msg import String
from std_srvs.srv import SetBool
from test_msgs.msg import Nested

from rows.qos import LATCHED, profile
from scene import Side, expect, row, until


def make(side):
    """A publisher, a subscription, a server and a client."""
    side.kept['publisher'] = side.node.create_publisher(Nested, 'out', profile(dict(LATCHED, depth=7)))
    side.kept['subscription'] = side.node.create_subscription(String, 'in', print, 10)
    side.kept['service'] = side.node.create_service(SetBool, 'served', print)
    side.kept['client'] = side.node.create_client(SetBool, 'asked')


def unmake(side):
    for kind in 'publisher', 'subscription', 'service', 'client':
        getattr(side.node, f'destroy_{kind}')(side.kept.pop(kind))


def add_node(side, name, namespace):
    side.kept[name] = Side(namespace, name)


def remove_node(side, name):
    side.kept.pop(name).close()


@row('nodes come and leave')
def _(scene):
    node = scene.here.node
    scene.there(add_node, 'second', f'{scene.namespace}/deeper')
    own = f'{scene.namespace}/here', f'{scene.namespace}/there', f'{scene.namespace}/deeper/second'
    until(lambda: set(own) <= set(node.get_fully_qualified_node_names()),
          f'the nodes {own}; seen are {node.get_fully_qualified_node_names()}')
    expect(('second', f'{scene.namespace}/deeper') in node.get_node_names_and_namespaces(), True, 'name and namespace')
    expect(node.get_node_names().count('second'), 1, 'the names')
    expect(node.wait_for_node(own[2], 1.0), True, 'whether a node is waited for')
    scene.there(remove_node, 'second')
    until(lambda: own[2] not in node.get_fully_qualified_node_names(), 'the node has left')
    expect(own[1] in node.get_fully_qualified_node_names(), True, 'whether the other is still there')


@row('topics and types')
def _(scene):
    scene.there(make)
    node, space = scene.here.node, scene.namespace
    expected = {f'{space}/out': ['test_msgs/msg/Nested'], f'{space}/in': ['std_msgs/msg/String']}
    until(lambda: expected.items() <= dict(node.get_topic_names_and_types()).items(), f'the topics {expected}')
    until(lambda: node.count_publishers(f'{space}/out') == 1 and node.count_subscribers(f'{space}/in') == 1, 'one of each')
    expect((node.count_subscribers(f'{space}/out'), node.count_publishers(f'{space}/in')), (0, 0), 'what is not there')
    scene.there(unmake)
    until(lambda: not set(expected) & set(dict(node.get_topic_names_and_types())), 'the topics have left')


@row('endpoints with type hash, QoS and node')
def _(scene):
    scene.there(make)
    node, topic = scene.here.node, f'{scene.namespace}/out'
    until(lambda: any(it.node_name == 'there' for it in node.get_publishers_info_by_topic(topic)), 'the publisher with its node')
    info, = node.get_publishers_info_by_topic(topic)
    expect((info.node_namespace, info.topic_type), (scene.namespace, 'test_msgs/msg/Nested'), 'its node and type')
    own = scene.here.node.create_publisher(Nested, 'own', 10)
    until(lambda: node.get_publishers_info_by_topic(f'{scene.namespace}/own'), 'the own publisher')
    own_info, = node.get_publishers_info_by_topic(f'{scene.namespace}/own')
    expect(str(info.topic_type_hash), str(own_info.topic_type_hash), 'its type hash')
    expect(str(info.topic_type_hash).startswith('RIHS01_'), True, 'whether the hash is one')
    expect(info.endpoint_type, TopicEndpointTypeEnum.PUBLISHER, 'its kind')
    expect(any(info.endpoint_gid), True, 'whether it has a gid')
    quality = info.qos_profile
    expect((quality.reliability, quality.durability), (ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL), 'its QoS')
    until(lambda: any(it.node_name == 'there' for it in node.get_subscriptions_info_by_topic(f'{scene.namespace}/in')),
          'the subscription with its node')
    node.destroy_publisher(own)


@row('services and clients')
def _(scene):
    scene.there(make)
    node, space = scene.here.node, scene.namespace
    served = f'{space}/served', ['std_srvs/srv/SetBool']
    until(lambda: served in node.get_service_names_and_types(), 'the service')
    until(lambda: node.count_services(served[0]) == 1, 'one server')
    until(lambda: node.count_clients(f'{space}/asked') == 1, 'one client')
    expect((node.count_clients(served[0]), node.count_services(f'{space}/asked')), (0, 0), 'what is not there')
    scene.there(unmake)
    until(lambda: node.count_services(served[0]) == 0, 'the server has left')
    until(lambda: node.count_clients(f'{space}/asked') == 0, 'the client has left')


@row('what a node has')
def _(scene):
    scene.there(make)
    node, space = scene.here.node, scene.namespace
    until(lambda: f'{space}/there' in node.get_fully_qualified_node_names(), 'the node')
    for ask, expected in (
            (node.get_publisher_names_and_types_by_node, (f'{space}/out', ['test_msgs/msg/Nested'])),
            (node.get_subscriber_names_and_types_by_node, (f'{space}/in', ['std_msgs/msg/String'])),
            (node.get_service_names_and_types_by_node, (f'{space}/served', ['std_srvs/srv/SetBool'])),
            (node.get_client_names_and_types_by_node, (f'{space}/asked', ['std_srvs/srv/SetBool']))):
        until(lambda: expected in ask('there', space), f'{expected} of the node')


@row('a node that is not there', processes=1)
def _(scene):
    try:
        scene.here.node.get_publisher_names_and_types_by_node('nobody', '/')
    except Exception as error:
        expect('nobody' in str(error), True, f'whether the error names it: {error}')
    else:
        raise AssertionError('no error')


@row('two nodes of one name')
def _(scene):
    scene.there(add_node, 'here', scene.namespace)
    node = scene.here.node
    until(lambda: node.get_fully_qualified_node_names().count(f'{scene.namespace}/here') == 2, 'both nodes')
    scene.there(remove_node, 'here')
    until(lambda: node.get_fully_qualified_node_names().count(f'{scene.namespace}/here') == 1, 'one of them has left')
