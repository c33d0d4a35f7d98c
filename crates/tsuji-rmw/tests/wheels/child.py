"""A process of the table. `child.py rows MODULE ROW…` runs rows of a module and tells of each on the descriptor that
WHEELS_REPORT names, `child.py serve MODULE` is the other process of such rows, and `child.py program MODULE FUNCTION` a
program that a row watches from outside."""

import faulthandler
import importlib
import json
import os
import sys
import time
import traceback

import rclpy
from rclpy.signals import SignalHandlerOptions

import scene

# What hangs is cut after this time, and says where it was.
ROW_SECONDS = 90


def tell(**words):
    os.write(int(os.environ['WHEELS_REPORT']), (json.dumps(words) + '\n').encode())


def reason_of(error):
    """What failed and in which line of the rows."""
    if isinstance(error, AssertionError) and error.args:
        return str(error)
    frames = [it for it in traceback.extract_tb(error.__traceback__) if '/rows/' in it.filename]
    where = f' in {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}' if frames else ''
    return f'{type(error).__name__}: {error}{where}'


def hangs_at_its_end():
    """Whether a participant of this process's middleware may never end. That of Kilted's Fast DDS does not now and then, once
    in some thousand times on a busy machine, with no other middleware about."""
    return (os.environ['RMW_IMPLEMENTATION'], os.environ['ROS_DISTRO']) == ('rmw_fastrtps_cpp', 'kilted')


def begin():
    """Initialises rclpy, and returns what keeps the participant where the end of one may hang: it ends with the last node."""
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    if hangs_at_its_end():
        return rclpy.create_node('keeper', namespace='/kept', enable_rosout=False, start_parameter_services=False)
    return None


def end():
    """Shuts rclpy down; where that may hang, the process ends without it."""
    if hangs_at_its_end():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    rclpy.shutdown()


def run_rows(module, texts):
    rows = {row.text: row for row in scene.rows_of(module)}
    _keeper = begin()
    stage = scene.Scene(module)
    for text in texts:
        faulthandler.dump_traceback_later(ROW_SECONDS, exit=True)
        tell(row=text, state='began')
        began, reason, value = time.monotonic(), None, None
        try:
            stage.next_row()
            value = rows[text].check(stage)
        except Exception as error:  # whatever it is, the next row is to run
            reason = reason_of(error) + stage.ended_by()
            traceback.print_exc()
        tell(row=text, state='ended', reason=reason, value=value, seconds=time.monotonic() - began)
    faulthandler.dump_traceback_later(ROW_SECONDS, exit=True)
    stage.close()
    end()
    faulthandler.cancel_dump_traceback_later()


def serve(module):
    functions = importlib.import_module(module)
    _keeper = begin()
    # Whatever else is printed must not be taken for an answer.
    answers = os.fdopen(os.dup(1), 'w', buffering=1)
    os.dup2(2, 1)
    side = None
    for line in sys.stdin:
        words = json.loads(line)
        try:
            if 'function' in words:
                value = getattr(functions, words['function'])(side, *words['arguments'])
            else:
                if side:
                    side.close()
                side, value = scene.Side(words['namespace'], words['name']), None
            answers.write(json.dumps({'value': value}) + '\n')
        except Exception as error:  # told to the row, which fails
            traceback.print_exc()
            answers.write(json.dumps({'error': reason_of(error)}) + '\n')
    if side:
        side.close()
    end()


if __name__ == '__main__':
    if sys.argv[1] != 'program':
        faulthandler.enable()
    if sys.argv[1] == 'rows':
        run_rows(sys.argv[2], sys.argv[3:])
    elif sys.argv[1] == 'serve':
        serve(sys.argv[2])
    else:
        getattr(importlib.import_module(sys.argv[2]), sys.argv[3])()
