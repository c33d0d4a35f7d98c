"""Services: what is asked here is answered there."""

import functools
import threading

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.qos import QoSProfile, qos_profile_services_default
from rclpy.service_introspection import ServiceIntrospectionState
from std_srvs.srv import SetBool, Trigger
from test_msgs import service_fixtures
from test_msgs import srv

from scene import expect, ready, result_of, row, until

# So many requests, and replies, may wait.
MANY = QoSProfile(depth=100)
TYPES = sorted(name for name in vars(srv) if name[0].isupper() and '_' not in name)


def calls(name):
    """The requests of a type, each with the reply to it."""
    return service_fixtures.get_test_srv(name)


def serve(side, name):
    """Answers each request of a type with the reply that belongs to it."""

    def answer(request, _):
        return next(response for it, response in calls(name) if it == request)

    side.kept['service'] = side.node.create_service(getattr(srv, name), 'service', answer)


def client_of(scene, kind, name='service'):
    return ready(scene.here.node.create_client(kind, name, qos_profile=MANY))


def check_type(scene, name):
    scene.there(serve, name)
    client = client_of(scene, getattr(srv, name))
    for request, response in calls(name):
        expect(result_of(client.call_async(request), 'a reply'), response, 'the reply')


for name in TYPES:
    row(f'test_msgs/srv/{name}')(functools.partial(check_type, name=name))


def serve_flags(side):
    """Says in its reply what was asked."""

    def answer(request, response):
        response.success, response.message = request.data, f'{request.data}'
        return response

    side.kept['service'] = side.node.create_service(SetBool, 'service', answer, qos_profile=MANY)


@row('many in flight')
def _(scene):
    scene.there(serve_flags)
    client = client_of(scene, SetBool)
    futures = [client.call_async(SetBool.Request(data=number % 3 == 0)) for number in range(100)]
    replies = [result_of(it, f'the reply to request {number}') for number, it in enumerate(futures)]
    expect([it.success for it in replies], [number % 3 == 0 for number in range(100)], 'each reply to its request')


@row('two clients, each its own replies')
def _(scene):
    scene.there(serve_flags)
    yes, no = (client_of(scene, SetBool) for _ in range(2))
    futures = [(yes.call_async(SetBool.Request(data=True)), no.call_async(SetBool.Request(data=False))) for _ in range(20)]
    for one, other in futures:
        expect((result_of(one, 'a reply').success, result_of(other, 'a reply').success), (True, False), 'the replies')


@row('call() that blocks')
def _(scene):
    scene.there(serve_flags)
    client = client_of(scene, SetBool)
    replies = []
    thread = threading.Thread(target=lambda: replies.append(client.call(SetBool.Request(data=True))), daemon=True)
    thread.start()
    until(lambda: replies, 'the call returns')
    expect(replies[0].message, 'True', 'the reply')


def answer_in_coroutine(side):
    """Answers in a coroutine."""
    side.kept['asked'] = []

    async def answer(_, response):
        side.kept['asked'].append(True)
        response.message = f'{len(side.kept["asked"])}'
        return response

    side.kept['service'] = side.node.create_service(
        Trigger, 'service', answer, callback_group=ReentrantCallbackGroup())


@row('a server in a coroutine')
def _(scene):
    scene.there(answer_in_coroutine)
    client = client_of(scene, Trigger)
    expect([result_of(client.call_async(Trigger.Request()), 'a reply').message for _ in range(3)], ['1', '2', '3'], 'the replies')


def stop_serving(side):
    side.node.destroy_service(side.kept.pop('service'))


@row('a server that leaves and comes back')
def _(scene):
    scene.there(serve_flags)
    client = client_of(scene, SetBool)
    for _ in range(3):
        expect(result_of(client.call_async(SetBool.Request(data=True)), 'a reply').success, True, 'the reply')
        scene.there(stop_serving)
        until(lambda: not client.service_is_ready(), 'the server has left')
        scene.there(serve_flags)
        until(client.service_is_ready, 'the server is back')


@row('no server', processes=1)
def _(scene):
    client = scene.here.node.create_client(Trigger, 'nobody')
    expect(client.wait_for_service(0.1), False, 'whether a server is there')
    future = client.call_async(Trigger.Request())
    expect(future.done(), False, 'whether a reply is there')
    client.remove_pending_request(future)
    scene.here.node.destroy_client(client)


@row('client and server of one node', processes=1)
def _(scene):
    serve_flags(scene.here)
    client = client_of(scene, SetBool)
    expect(result_of(client.call_async(SetBool.Request(data=True)), 'a reply').message, 'True', 'the reply')


@row('introspection of a service')
def _(scene):
    from service_msgs.msg import ServiceEventInfo
    scene.there(serve_flags)
    client = client_of(scene, SetBool)
    seen = []
    scene.here.node.create_subscription(
        SetBool.Event, 'service/_service_event', seen.append, qos_profile_services_default)
    client.configure_introspection(
        scene.here.node.get_clock(), qos_profile_services_default, ServiceIntrospectionState.CONTENTS)
    until(lambda: scene.here.node.count_publishers('service/_service_event') == 1, 'the events have a publisher')
    result_of(client.call_async(SetBool.Request(data=True)), 'a reply')
    until(lambda: len(seen) >= 2, 'an event of the request and one of the reply')
    expect([it.info.event_type for it in seen], [ServiceEventInfo.REQUEST_SENT, ServiceEventInfo.RESPONSE_RECEIVED], 'the events')
    expect((seen[0].request[0].data, seen[1].response[0].message), (True, 'True'), 'their contents')
