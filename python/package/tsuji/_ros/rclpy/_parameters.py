"""The parameters of a node."""

import math

from rclpy import exceptions
from rclpy.parameter import PARAMETER_SEPARATOR_STRING, Parameter
from rclpy.qos import qos_profile_parameter_events
from rclpy.validate import validate_parameter_name

_NUMBERS = (Parameter.Type.INTEGER, Parameter.Type.DOUBLE)


def _messages():
    import rcl_interfaces.msg as messages

    return messages


class ParametersMixin:
    """What `Node` has of parameters."""

    def _init_parameters(self, said, overrides, allow_undeclared, declare_overrides):
        self._parameters, self._descriptors = {}, {}
        self._allow_undeclared_parameters = allow_undeclared
        self._pre_set_parameters_callbacks, self._on_set_parameters_callbacks, self._post_set_parameters_callbacks = [], [], []
        self._parameter_overrides = {name: Parameter(name, value=_bytes_apart(value)) for name, value in said}
        self._parameter_overrides.update({it.name: it for it in overrides or ()})
        messages = _messages()
        self._parameter_event_publisher = self.create_publisher(messages.ParameterEvent, "/parameter_events", qos_profile_parameter_events)
        if declare_overrides:
            all_of = [(name, it.value, messages.ParameterDescriptor()) for name, it in self._parameter_overrides.items()]
            self.declare_parameters("", all_of, ignore_override=True)

    def declare_parameter(self, name, value=None, descriptor=None, ignore_override=False):
        """Declares a parameter with its default, and returns it: with what overrides give, or the default."""
        # A name alone, or a type, is not the same as a default that is None.
        given = (name,) if value is None and descriptor is None else (name, value) if descriptor is None else (name, value, descriptor)
        return self.declare_parameters("", [given], ignore_override)[0]

    def declare_parameters(self, namespace, parameters, ignore_override=False):
        """Declares several: tuples of a name, a default or type, and a descriptor."""
        declared, descriptors = [], {}
        ParameterDescriptor = _messages().ParameterDescriptor
        for index, given in enumerate(parameters):
            if not 1 <= len(given) <= 3:
                raise TypeError(f"Invalid parameter tuple length at index {index} in parameters list: {given}; expecting 1 to 3 elements")
            name, value, descriptor = (*given, *(None,) * (3 - len(given)))
            descriptor = ParameterDescriptor() if descriptor is None else descriptor
            if not isinstance(name, str):
                raise TypeError(f"First element {name} at index {index} in parameters list is not a str.")
            if not isinstance(descriptor, ParameterDescriptor):
                raise TypeError(f"Third element {descriptor} at index {index} in parameters list is not a ParameterDescriptor.")
            if isinstance(value, Parameter.Type):
                if value is Parameter.Type.NOT_SET:
                    raise ValueError("Cannot declare parameter of type NOT_SET")
                descriptor.type, value = value.value, None
            elif isinstance(value, Parameter):
                value = value.value
            elif len(given) < 2:
                descriptor.dynamic_typing = True
            full = f"{namespace}{PARAMETER_SEPARATOR_STRING}{name}" if namespace else name
            validate_parameter_name(full)
            if not descriptor.type and not descriptor.dynamic_typing:
                # Of the default: what overrides give is to fit it.
                descriptor.type = Parameter(full, value=value).type_.value
            if not ignore_override and full in self._parameter_overrides:
                value = self._parameter_overrides[full].value
            parameter = Parameter(full, value=value)
            descriptor.name = full
            declared.append(parameter)
            descriptors[full] = descriptor
        already = [it.name for it in declared if it.name in self._parameters]
        if already:
            raise exceptions.ParameterAlreadyDeclaredException(already)
        for parameter in declared:
            result = self._set_atomically([parameter], descriptors, is_declaring=True)
            if not result.successful:
                if result.reason.startswith("Wrong parameter type"):
                    raise exceptions.InvalidParameterTypeException(parameter, Parameter.Type(descriptors[parameter.name].type).name)
                raise exceptions.InvalidParameterValueException(parameter.name, parameter.value, result.reason)
        return [self._parameters[it.name] for it in declared]

    def undeclare_parameter(self, name):
        if name not in self._parameters:
            raise exceptions.ParameterNotDeclaredException(name)
        if self._descriptors[name].read_only:
            raise exceptions.ParameterImmutableException(name)
        del self._parameters[name], self._descriptors[name]

    def has_parameter(self, name):
        return name in self._parameters

    def get_parameter_types(self, names):
        return [self.get_parameter_type(it) for it in names]

    def get_parameter_type(self, name):
        if name in self._parameters:
            return self._parameters[name].type_
        if self._allow_undeclared_parameters:
            return Parameter.Type.NOT_SET
        raise exceptions.ParameterNotDeclaredException(name)

    def get_parameters(self, names):
        if not all(isinstance(it, str) for it in names):
            raise TypeError("All names must be instances of type str")
        return [self.get_parameter(it) for it in names]

    def get_parameter(self, name):
        parameter = self._parameters.get(name)
        if parameter is not None:
            descriptor = self._descriptors[name]
            if parameter.type_ is Parameter.Type.NOT_SET and not descriptor.dynamic_typing and descriptor.type:
                raise exceptions.ParameterUninitializedException(name)
            return parameter
        if self._allow_undeclared_parameters:
            return Parameter(name, Parameter.Type.NOT_SET, None)
        raise exceptions.ParameterNotDeclaredException(name)

    def get_parameter_or(self, name, alternative_value=None):
        parameter = self._parameters.get(name)
        if parameter is not None and parameter.type_ is not Parameter.Type.NOT_SET:
            return parameter
        return Parameter(name, Parameter.Type.NOT_SET) if alternative_value is None else alternative_value

    def get_parameters_by_prefix(self, prefix):
        prefix = prefix + PARAMETER_SEPARATOR_STRING if prefix else ""
        return {name[len(prefix) :]: it for name, it in self._parameters.items() if name.startswith(prefix)}

    def set_parameters(self, parameter_list):
        """Sets each for itself. Returns a result for each."""
        self._check_list(parameter_list)
        return [self._change([it]) for it in parameter_list]

    def set_parameters_atomically(self, parameter_list):
        """Sets all or none."""
        self._check_list(parameter_list)
        return self._change(parameter_list)

    def _check_list(self, parameter_list):
        for parameter in parameter_list:
            if not isinstance(parameter, Parameter):
                raise TypeError("parameter must be instance of type 'rclpy.parameter.Parameter'")
        unknown = [it.name for it in parameter_list if it.name not in self._parameters]
        if unknown and not self._allow_undeclared_parameters:
            raise exceptions.ParameterNotDeclaredException(unknown)

    def _change(self, parameter_list):
        for callback in list(self._pre_set_parameters_callbacks):
            parameter_list = callback(parameter_list)
            if not parameter_list:
                return _messages().SetParametersResult(
                    successful=False,
                    reason="parameter list cannot be empty, this might be due to pre_set_parameters_callback modifying the original parameters list.",
                )
            self._check_list(parameter_list)
        return self._set_atomically(parameter_list, {})

    def _set_atomically(self, parameter_list, descriptors, is_declaring=False):
        messages = _messages()
        for parameter in parameter_list:
            descriptor = descriptors.get(parameter.name) or self._descriptors.get(parameter.name)
            why = None if descriptor is None else self._refusal(parameter, descriptor, is_declaring)
            if why is not None:
                return messages.SetParametersResult(successful=False, reason=why)
        for callback in list(self._on_set_parameters_callbacks):
            result = callback(parameter_list)
            if not isinstance(result, messages.SetParametersResult):
                return messages.SetParametersResult(successful=False, reason="Callback returned an invalid type")
            if not result.successful:
                return result
        event = messages.ParameterEvent(node=self.get_fully_qualified_name(), stamp=self._clock.now().to_msg())
        new, changed, deleted = [], [], []
        for parameter in parameter_list:
            before = self._parameters.get(parameter.name)
            was_set = before is not None and before.type_ is not Parameter.Type.NOT_SET
            descriptor = descriptors.get(parameter.name) or self._descriptors.get(parameter.name)
            if descriptor is None:
                # Whoever sets a parameter that is not declared declares it.
                descriptor = messages.ParameterDescriptor(name=parameter.name, dynamic_typing=True)
            if parameter.type_ is Parameter.Type.NOT_SET and not is_declaring:
                # To unset one is to forget it.
                if was_set:
                    deleted.append(parameter.to_parameter_msg())
                self._parameters.pop(parameter.name, None)
                self._descriptors.pop(parameter.name, None)
                continue
            self._parameters[parameter.name], self._descriptors[parameter.name] = parameter, descriptor
            if parameter.type_ is not Parameter.Type.NOT_SET:
                (changed if was_set else new).append(parameter.to_parameter_msg())
        for callback in list(self._post_set_parameters_callbacks):
            callback(parameter_list)
        if new or changed or deleted:
            event.new_parameters, event.changed_parameters, event.deleted_parameters = new, changed, deleted
            self._parameter_event_publisher.publish(event)
        return messages.SetParametersResult(successful=True)

    def _refusal(self, parameter, descriptor, is_declaring):
        """Why a descriptor does not let a parameter have this value."""
        if descriptor.read_only and not is_declaring:
            return f"Trying to set a read-only parameter: {parameter.name}."
        if parameter.type_ is Parameter.Type.NOT_SET:
            is_static = not descriptor.dynamic_typing and not is_declaring
            return "Static parameter cannot be undeclared" if is_static and descriptor.type else None
        if not descriptor.dynamic_typing and descriptor.type and parameter.type_.value != descriptor.type:
            return f"Wrong parameter type, expected '{Parameter.Type(descriptor.type)}' got '{parameter.type_}'"
        if parameter.type_ is Parameter.Type.INTEGER and descriptor.integer_range:
            return _outside(parameter, descriptor.integer_range[0], lambda a, b: a == b)
        if parameter.type_ is Parameter.Type.DOUBLE and descriptor.floating_point_range:
            return _outside(parameter, descriptor.floating_point_range[0], lambda a, b: math.isclose(a, b, rel_tol=self.PARAM_REL_TOL))
        return None

    def list_parameters(self, prefixes, depth):
        """Names below prefixes, so many levels deep; all with depth 0."""
        if not isinstance(prefixes, (list, tuple)):
            raise TypeError("The prefixes argument must be a list")
        if not isinstance(depth, int) or depth < 0:
            raise TypeError("The depth must be a non-negative integer")
        result = _messages().ListParametersResult()
        names, below = [], set()
        for name in self._parameters:
            if self._is_listed(name, prefixes, depth):
                names.append(name)
                prefix = name.rpartition(PARAMETER_SEPARATOR_STRING)[0]
                if prefix:
                    below.add(prefix)
        result.names, result.prefixes = names, sorted(below)
        return result

    @staticmethod
    def _is_listed(name, prefixes, depth):
        if not prefixes:
            return not depth or name.count(PARAMETER_SEPARATOR_STRING) < depth
        for prefix in prefixes:
            if name == prefix:
                return True
            start = prefix + PARAMETER_SEPARATOR_STRING
            if name.startswith(start) and (not depth or name[len(start) :].count(PARAMETER_SEPARATOR_STRING) < depth):
                return True
        return False

    def add_pre_set_parameters_callback(self, callback):
        self._pre_set_parameters_callbacks.insert(0, callback)

    def add_on_set_parameters_callback(self, callback):
        self._on_set_parameters_callbacks.insert(0, callback)

    def add_post_set_parameters_callback(self, callback):
        self._post_set_parameters_callbacks.insert(0, callback)

    def remove_pre_set_parameters_callback(self, callback):
        self._pre_set_parameters_callbacks.remove(callback)

    def remove_on_set_parameters_callback(self, callback):
        self._on_set_parameters_callbacks.remove(callback)

    def remove_post_set_parameters_callback(self, callback):
        self._post_set_parameters_callbacks.remove(callback)

    def describe_parameter(self, name):
        if name in self._descriptors:
            return self._descriptors[name]
        if self._allow_undeclared_parameters:
            return _messages().ParameterDescriptor()
        raise exceptions.ParameterNotDeclaredException(name)

    def describe_parameters(self, names):
        return [self.describe_parameter(it) for it in names]

    def set_descriptor(self, name, descriptor, alternative_value=None):
        """Replaces a descriptor, and sets the parameter to `alternative_value` where that is given."""
        if name not in self._descriptors:
            if not self._allow_undeclared_parameters:
                raise exceptions.ParameterNotDeclaredException(name)
            return self.get_parameter(name).get_parameter_value()
        before = self._descriptors[name]
        if before.read_only:
            raise exceptions.ParameterImmutableException(name)
        parameter = (
            self._parameters[name]
            if alternative_value is None
            else Parameter.from_parameter_msg(_messages().Parameter(name=name, value=alternative_value))
        )
        if not descriptor.type:
            descriptor.type = before.type
        descriptor.name = name
        why = self._refusal(parameter, descriptor, is_declaring=True)
        if why is not None:
            raise exceptions.InvalidParameterValueException(name, parameter.value, why)
        self._descriptors[name] = descriptor
        self._parameters[name] = parameter
        return parameter.get_parameter_value()


def _outside(parameter, allowed, is_same):
    """Why a number is not in a range."""
    value, low, high = parameter.value, allowed.from_value, allowed.to_value
    if is_same(value, low) or is_same(value, high):
        return None
    if not low <= value <= high:
        return f"Parameter {parameter.name} out of range. Min: {low}, Max: {high}, value: {value}"
    step = allowed.step
    if step:
        distance = (value - low) / step
        if not is_same(round(distance) * step, value - low):
            return f"The parameter value for {parameter.name} is not a valid step. Min: {low}, max: {high}, value: {value}, step: {step}"
    return None


def _bytes_apart(value):
    return [bytes([it]) for it in value] if isinstance(value, bytes) else value
