"""Arithmetic of vectors (x, y, z) and of unit quaternions (x, y, z, w)."""

import math

IDENTITY = (0.0, 0.0, 0.0, 1.0)
ZERO = (0.0, 0.0, 0.0)


def add(a, b):
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def rotate(rotation, vector):
    x, y, z, w = rotation
    axis = (x, y, z)
    turn = cross(axis, vector)
    twice = cross(axis, turn)
    return (
        vector[0] + 2.0 * (w * turn[0] + twice[0]),
        vector[1] + 2.0 * (w * turn[1] + twice[1]),
        vector[2] + 2.0 * (w * turn[2] + twice[2]),
    )


def multiply(a, b):
    """The rotation `b`, and then `a`."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by + ay * bw + az * bx - ax * bz,
        aw * bz + az * bw + ax * by - ay * bx,
        aw * bw - ax * bx - ay * by - az * bz,
    )


def conjugate(rotation):
    x, y, z, w = rotation
    return -x, -y, -z, w


def normalize(rotation):
    norm = math.sqrt(sum(it * it for it in rotation))
    return tuple(it / norm for it in rotation)


def between(a, b, ratio):
    """The vector at `ratio` on the straight line from `a` (0) to `b` (1)."""
    return tuple(one + (other - one) * ratio for one, other in zip(a, b))


def slerp(a, b, ratio):
    """The rotation at `ratio` on the shorter way from `a` (0) to `b` (1)."""
    dot = sum(one * other for one, other in zip(a, b))
    angle = math.acos(min(abs(dot), 1.0))
    if angle == 0.0:
        return a
    of_a = math.sin((1.0 - ratio) * angle) / math.sin(angle)
    of_b = math.copysign(math.sin(ratio * angle) / math.sin(angle), dot)
    return tuple(one * of_a + other * of_b for one, other in zip(a, b))
