"""What is raised."""


class NotInitializedException(Exception):
    """`init` was not called, or the context has ended."""

    def __init__(self, message=None):
        super().__init__("rclpy.init() has not been called" if message is None else f"rclpy.init() has not been called: {message}")


class NoTypeSupportImportedException(Exception):
    """The type of a message is none."""

    def __init__(self):
        super().__init__("no type_support imported")


class NameValidationException(Exception):
    """A name that ROS does not allow."""

    def __init__(self, name_type, name, error_msg, invalid_index):
        super().__init__(f"Invalid {name_type}: {error_msg}:\n  '{name}'\n   {' ' * invalid_index}^")
        self.name_type, self.name, self.error_msg, self.invalid_index = name_type, name, error_msg, invalid_index


class InvalidNamespaceException(NameValidationException):
    def __init__(self, name, error_msg, invalid_index):
        super().__init__("namespace", name, error_msg, invalid_index)


class InvalidNodeNameException(NameValidationException):
    def __init__(self, name, error_msg, invalid_index):
        super().__init__("node name", name, error_msg, invalid_index)


class InvalidTopicNameException(NameValidationException):
    def __init__(self, name, error_msg, invalid_index):
        super().__init__("topic name", name, error_msg, invalid_index)


class InvalidServiceNameException(NameValidationException):
    def __init__(self, name, error_msg, invalid_index):
        super().__init__("service name", name, error_msg, invalid_index)


class ParameterException(Exception):
    """What is wrong with a parameter."""

    def __init__(self, error_msg, parameters):
        super().__init__(f"{error_msg}: {parameters}")
        self.parameters = parameters


class ParameterNotDeclaredException(ParameterException):
    def __init__(self, parameters):
        super().__init__("Invalid access to undeclared parameter(s)", parameters)


class ParameterAlreadyDeclaredException(ParameterException):
    def __init__(self, parameters):
        super().__init__("Parameter(s) already declared", parameters)


class InvalidParameterException(ParameterException):
    def __init__(self, parameter_name):
        super().__init__("Invalid parameter name", parameter_name)


class InvalidParameterTypeException(ParameterException):
    def __init__(self, desired_parameter, expected_type):
        super().__init__(
            f"Trying to set parameter '{desired_parameter.name}' to '{desired_parameter.value}' of type "
            f"'{desired_parameter.type_.name}', expecting type '{expected_type}'",
            desired_parameter.name,
        )
        self.param_name, self.desired_type, self.expected_type = desired_parameter.name, desired_parameter.type_, expected_type


class InvalidParameterValueException(ParameterException):
    def __init__(self, parameter, value, reason):
        super().__init__(f"Invalid parameter value ({value}) for parameter '{parameter}'. Reason: {reason}", parameter)


class ParameterImmutableException(ParameterException):
    def __init__(self, parameter_name):
        super().__init__("Attempted to modify read-only parameter", parameter_name)


class ParameterUninitializedException(ParameterException):
    def __init__(self, parameter_name):
        super().__init__("The parameter is not initialized", parameter_name)


class ROSInterruptException(Exception):
    """A sleep was ended by the end of the context."""

    def __init__(self):
        super().__init__("rclpy.shutdown() has been called")


class InvalidHandle(Exception):
    """It was destroyed."""


class RCLError(RuntimeError):
    """What rcl would refuse."""


class UnsupportedEventTypeError(RuntimeError):
    """An event that is not to be had."""
