"""Parameters: those of a node there, asked for and set from here."""

from rcl_interfaces.msg import ParameterDescriptor, ParameterEvent, SetParametersResult
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.parameter_client import AsyncParameterClient
from rclpy.qos import qos_profile_parameter_events

from scene import expect, result_of, row, until

VALUES = {
    'flag': True, 'number': 7, 'ratio': 0.5, 'text': 'a text', 'bytes': [b'\x01', b'\x02'], 'flags': [True, False],
    'numbers': [1, 2, 3], 'ratios': [0.5, 1.5], 'texts': ['one', 'two'],
}


def declare(side):
    """Declares the values, of which `text` may not be empty and `number` not be written."""
    for name, value in VALUES.items():
        side.node.declare_parameter(name, value, ParameterDescriptor(read_only=name == 'number', description=f'of {name}'))

    def decide(parameters):
        empty = any(it.name == 'text' and it.value == '' for it in parameters)
        return SetParametersResult(successful=not empty, reason='an empty text' if empty else '')

    side.node.add_on_set_parameters_callback(decide)


def value(side, name):
    return side.node.get_parameter(name).value


def client_of(scene):
    scene.there(declare)
    client = AsyncParameterClient(scene.here.node, f'{scene.namespace}/there')
    until(client.services_are_ready, 'the services of the parameters are there')
    return client


@row('listed, described and got')
def _(scene):
    client = client_of(scene)
    names = result_of(client.list_parameters(), 'the list').result.names
    expect(set(VALUES) <= set(names), True, f'the names are in {names}')
    descriptors = result_of(client.describe_parameters(list(VALUES)), 'the descriptors').descriptors
    expect([it.description for it in descriptors], [f'of {it}' for it in VALUES], 'the descriptions')
    types = result_of(client.get_parameter_types(['flag', 'texts']), 'the types').types
    expect(list(types), [Parameter.Type.BOOL.value, Parameter.Type.STRING_ARRAY.value], 'the types')
    values = result_of(client.get_parameters(list(VALUES)), 'the values').values
    expect([unified(parameter_value_to_python(it)) for it in values], list(VALUES.values()), 'the values')


def unified(value):
    return list(value) if not isinstance(value, (bool, int, float, str)) else value


@row('set, refused and set together')
def _(scene):
    client = client_of(scene)
    new = [Parameter('flag', value=False), Parameter('texts', value=['three'])]
    results = result_of(client.set_parameters(new), 'the results').results
    expect([it.successful for it in results], [True, True], 'the results')
    expect((scene.there(value, 'flag'), scene.there(value, 'texts')), (False, ['three']), 'the values there')
    results = result_of(client.set_parameters([Parameter('text', value=''), Parameter('number', value=8)]), 'the results').results
    expect([it.successful for it in results], [False, False], 'the results')
    expect(results[0].reason, 'an empty text', 'the reason')
    together = [Parameter('ratio', value=2.5), Parameter('text', value='')]
    expect(result_of(client.set_parameters_atomically(together), 'the result').result.successful, False, 'the result together')
    expect(scene.there(value, 'ratio'), 0.5, 'what was to be set together with it')


@row('events of parameters')
def _(scene):
    events = []
    scene.here.node.create_subscription(ParameterEvent, '/parameter_events', events.append, qos_profile_parameter_events)
    scene.there(met_events)
    until(lambda: scene.here.node.count_publishers('/parameter_events') >= 2, 'the events of both nodes are matched')
    scene.there(set_until, 'declared')
    own = f'{scene.namespace}/there'
    until(lambda: any(it.node == own and any(p.name == 'declared' for p in it.new_parameters) for it in list(events)),
          'the event of a new parameter')


def met_events(side):
    until(lambda: side.node.count_subscribers('/parameter_events') >= 1, 'someone listens to the events')


def set_until(side, name):
    side.node.declare_parameter(name, 1)
