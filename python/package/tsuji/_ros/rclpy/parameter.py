"""Parameters: names with values of a type."""

import array
from enum import Enum

PARAMETER_SEPARATOR_STRING = "."


class Parameter:
    """A name with a value."""

    class Type(Enum):
        NOT_SET = 0
        BOOL = 1
        INTEGER = 2
        DOUBLE = 3
        STRING = 4
        BYTE_ARRAY = 5
        BOOL_ARRAY = 6
        INTEGER_ARRAY = 7
        DOUBLE_ARRAY = 8
        STRING_ARRAY = 9

        @classmethod
        def from_parameter_value(cls, value):
            """The type of what Python has for a value."""
            if value is None:
                return cls.NOT_SET
            for kind, one, many in _KINDS:
                if isinstance(value, kind):
                    return one
            if isinstance(value, (list, tuple, array.array)):
                if all(isinstance(it, bytes) for it in value):
                    return cls.BYTE_ARRAY
                for kind, one, many in _KINDS:
                    if all(isinstance(it, kind) for it in value):
                        return many
                raise TypeError("The given value is not a list of one of the allowed types.")
            raise TypeError(f"The given value is not one of the allowed types: {type(value).__name__}")

        def check(self, value):
            """Whether a value is of this type."""
            if self is Parameter.Type.NOT_SET:
                return value is None
            if isinstance(value, (list, tuple, array.array)) and len(value) == 0:
                return self.value >= Parameter.Type.BYTE_ARRAY.value
            try:
                return Parameter.Type.from_parameter_value(value) is self
            except TypeError:
                return False

    @classmethod
    def from_parameter_msg(cls, param_msg):
        return cls(param_msg.name, cls.Type(param_msg.value.type), parameter_value_to_python(param_msg.value))

    def __init__(self, name, type_=None, value=None):
        if type_ is None:
            type_ = Parameter.Type.from_parameter_value(value)
        if not isinstance(type_, Parameter.Type):
            raise TypeError(f"type must be an instance of '{Parameter.Type}'")
        if not type_.check(value):
            raise ValueError(f"Type '{type_}' and value '{value}' do not agree")
        self._name, self._type_ = name, type_
        self._value = list(value) if isinstance(value, array.array) else value

    @property
    def name(self):
        return self._name

    @property
    def type_(self):
        return self._type_

    @property
    def value(self):
        return self._value

    def get_parameter_value(self):
        from rcl_interfaces.msg import ParameterValue

        value = ParameterValue(type=self._type_.value)
        field = _FIELDS[self._type_]
        if field is not None:
            setattr(value, field, b"".join(self._value) if self._type_ is Parameter.Type.BYTE_ARRAY else self._value)
        return value

    def to_parameter_msg(self):
        from rcl_interfaces.msg import Parameter as Message

        return Message(name=self._name, value=self.get_parameter_value())

    def __eq__(self, other):
        if not isinstance(other, Parameter):
            return NotImplemented
        return (self._name, self._type_, self._value) == (other._name, other._type_, other._value)

    def __repr__(self):
        return f"Parameter({self._name!r}, {self._type_}, {self._value!r})"


_T = Parameter.Type
# A bool is an int too.
_KINDS = (
    (bool, _T.BOOL, _T.BOOL_ARRAY),
    (int, _T.INTEGER, _T.INTEGER_ARRAY),
    (float, _T.DOUBLE, _T.DOUBLE_ARRAY),
    (str, _T.STRING, _T.STRING_ARRAY),
)
_FIELDS = {it: None if it is _T.NOT_SET else f"{it.name.lower()}_value" for it in _T}


def parameter_value_to_python(parameter_value):
    """What Python has for a message ParameterValue."""
    try:
        type_ = Parameter.Type(parameter_value.type)
    except ValueError:
        raise RuntimeError(f"unexpected parameter type {parameter_value.type}") from None
    field = _FIELDS[type_]
    if field is None:
        return None
    value = getattr(parameter_value, field)
    if type_ is Parameter.Type.BYTE_ARRAY:
        return [bytes([it]) for it in value]
    return list(value) if type_.value >= Parameter.Type.BYTE_ARRAY.value else value


def _yaml():
    try:
        import yaml
    except ImportError:
        raise ImportError("reading parameters from YAML takes the package PyYAML (pip install pyyaml)") from None
    return yaml


def get_parameter_value(string_value):
    """The message ParameterValue of a text in YAML."""
    try:
        value = _yaml().safe_load(string_value)
    except Exception as error:
        if isinstance(error, ImportError):
            raise
        value = string_value
    if isinstance(value, list) and not value:
        return Parameter("", Parameter.Type.STRING_ARRAY, []).get_parameter_value()
    try:
        return Parameter("", value=value).get_parameter_value()
    except TypeError:
        return Parameter("", value=string_value).get_parameter_value()


def parameter_dict_from_yaml_file(parameter_file, use_wildcard=False, target_nodes=None, namespace=""):
    """The parameters of a file, each as a message, by name."""
    with open(parameter_file) as file:
        nodes = _yaml().safe_load(file)
    wanted = list(nodes) if not target_nodes else [it for it in target_nodes if it in nodes]
    if use_wildcard and "/**" in nodes and "/**" not in wanted:
        wanted.insert(0, "/**")
    if not wanted:
        raise RuntimeError("Param file does not contain any valid parameters")
    found = {}
    for node in wanted:
        if "ros__parameters" not in nodes[node]:
            raise RuntimeError(f"YAML file is not a valid ROS parameter file for node {node}")
        found.update(_unpacked(namespace, nodes[node]["ros__parameters"]))
    return found


def _unpacked(prefix, values):
    found = {}
    for name, value in values.items():
        full = f"{prefix}{PARAMETER_SEPARATOR_STRING}{name}" if prefix else name
        if isinstance(value, dict):
            found.update(_unpacked(full, value))
        else:
            found[full] = Parameter(full, value=value).to_parameter_msg()
    return found
