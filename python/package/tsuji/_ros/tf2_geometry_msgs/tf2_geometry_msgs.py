"""The same as the package, as in ROS 2."""

from tf2_geometry_msgs import *
