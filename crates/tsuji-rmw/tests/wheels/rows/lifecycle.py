"""Managed nodes: one there is led through its states from here."""

from lifecycle_msgs.msg import State, Transition, TransitionEvent
from lifecycle_msgs.srv import ChangeState, GetAvailableStates, GetAvailableTransitions, GetState
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from std_msgs.msg import String

from scene import Side, expect, ready, result_of, row, until


class Managed(LifecycleNode):
    """Fails to be configured once, and publishes while it is active."""

    def __init__(self, namespace):
        super().__init__('managed', namespace=namespace)
        self.tries = 0
        self.out = self.create_lifecycle_publisher(String, 'out', 10)
        self.timer = self.create_timer(0.02, lambda: self.out.publish(String(data='active')))

    def on_configure(self, state: LifecycleState):
        self.tries += 1
        return TransitionCallbackReturn.FAILURE if self.tries == 1 else TransitionCallbackReturn.SUCCESS


def manage(side):
    side.kept['managed'] = Side(None, None, node=Managed(side.node.get_namespace()))


def stop(side):
    side.kept['managed'].close()


@row('led through its states')
def _(scene):
    scene.there(manage)
    node, heard, events = scene.here.node, [], []
    node.create_subscription(String, 'out', lambda it: heard.append(it.data), 10)
    node.create_subscription(TransitionEvent, 'managed/transition_event', events.append, 10)

    def ask(kind, name, **fields):
        client = ready(node.create_client(kind, f'managed/{name}'))
        return result_of(client.call_async(kind.Request(**fields)), f'a reply of {name}')

    def change(transition):
        return ask(ChangeState, 'change_state', transition=Transition(id=transition)).success

    def state():
        return ask(GetState, 'get_state').current_state.id

    expect(state(), State.PRIMARY_STATE_UNCONFIGURED, 'the first state')
    until(lambda: node.count_publishers('managed/transition_event') == 1, 'the events have a publisher')
    labels = [it.transition.label for it in ask(GetAvailableTransitions, 'get_available_transitions').available_transitions]
    expect(sorted(labels), ['configure', 'shutdown'], 'the transitions')
    expect(len(ask(GetAvailableStates, 'get_available_states').available_states), 11, 'how many states there are')
    expect(change(Transition.TRANSITION_CONFIGURE), False, 'whether it is configured at first')
    expect(state(), State.PRIMARY_STATE_UNCONFIGURED, 'the state after a failure')
    expect(change(Transition.TRANSITION_CONFIGURE), True, 'whether it is configured')
    expect(state(), State.PRIMARY_STATE_INACTIVE, 'the state when configured')
    expect(heard, [], 'heard while it is inactive')
    expect(change(Transition.TRANSITION_ACTIVATE), True, 'whether it is activated')
    until(lambda: heard, 'what it publishes while it is active')
    expect(change(Transition.TRANSITION_DEACTIVATE), True, 'whether it is deactivated')
    expect(change(Transition.TRANSITION_CLEANUP), True, 'whether it is cleaned up')
    expect(change(Transition.TRANSITION_UNCONFIGURED_SHUTDOWN), True, 'whether it is shut down')
    expect(state(), State.PRIMARY_STATE_FINALIZED, 'the last state')
    until(lambda: events and events[-1].goal_state.id == State.PRIMARY_STATE_FINALIZED, 'the event of the last transition')
    scene.there(stop)
