"""Lets others ask and set from which severity on the loggers of a node are heard."""

import rclpy.logging


class LoggingService:
    """The two services of a node's loggers."""

    def __init__(self, node):
        from rcl_interfaces.srv import GetLoggerLevels, SetLoggerLevels

        node.create_service(GetLoggerLevels, "~/get_logger_levels", self._get)
        node.create_service(SetLoggerLevels, "~/set_logger_levels", self._set)

    def _get(self, request, response):
        from rcl_interfaces.msg import LoggerLevel

        response.levels = [LoggerLevel(name=it, level=int(rclpy.logging.get_logger_effective_level(it))) for it in request.names]
        return response

    def _set(self, request, response):
        from rcl_interfaces.msg import SetLoggerLevelsResult

        for level in request.levels:
            result = SetLoggerLevelsResult(successful=True)
            try:
                rclpy.logging.set_logger_level(level.name, level.level)
            except (ValueError, RuntimeError) as error:
                result = SetLoggerLevelsResult(successful=False, reason=str(error))
            response.results.append(result)
        return response
