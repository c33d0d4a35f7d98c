#!/usr/bin/env python3
"""The packages of rmw_tsuji: its wheel in the Python of a distribution's wheels, and what is in the Debian packages."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# A node that says which middleware it runs on once it has heard itself.
NODE = """
import rclpy
from std_msgs.msg import String
rclpy.init()
node = rclpy.create_node('packaged')
heard = []
node.create_subscription(String, 'chatter', heard.append, 10)
publisher = node.create_publisher(String, 'chatter', 10)
node.create_timer(0.05, lambda: publisher.publish(String(data='hello')))
for _ in range(200):
    rclpy.spin_once(node, timeout_sec=0.1)
    if heard:
        break
print(rclpy.get_rmw_implementation_identifier(), heard[0].data)
rclpy.shutdown()
"""
results = []


def check(name, met, why=''):
    results.append(met)
    print(f'test packages: {name} ... {"ok" if met else "FAILED"}', flush=True)
    if not met:
        print(f'    {why}', flush=True)


def run(python, implementation, preload=None):
    """Run the node, and return what it says and its status."""
    environment = dict(os.environ, TSUJI_INTEROP='none', ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
    for name, value in [('RMW_IMPLEMENTATION', implementation), ('LD_PRELOAD', preload)]:
        environment.pop(name, None)
        if value is not None:
            environment[name] = value
    done = subprocess.run([python, '-c', NODE], env=environment, capture_output=True, text=True, timeout=60)
    return done.stdout.strip() or done.stderr.strip(), done.returncode


def pip(python, *words):
    subprocess.run([python, '-m', 'pip', '--quiet', '--disable-pip-version-check', *words], check=True)


def wheel(distribution, python, path):
    """Try the wheel, and take it out again: other tests load a library of their own."""
    prefix = pathlib.Path(python).parent.parent
    library = prefix / 'lib/librmw_tsuji.so'
    pip(python, 'install', '--no-index', '--no-deps', '--force-reinstall', path)
    try:
        for implementation, expect in [('rmw_tsuji', 'rmw_tsuji'), (None, 'rmw_fastrtps_cpp'), ('rmw_fastrtps_cpp', 'rmw_fastrtps_cpp')]:
            said = run(python, implementation)
            check(f'RMW_IMPLEMENTATION is {implementation} ({distribution})', said == (f'{expect} hello', 0), said)
        # As a child of one that had it has it in its environment.
        said = run(python, 'rmw_fastrtps_cpp', str(library))
        check(f'another after it ({distribution})', said == ('rmw_fastrtps_cpp hello', 0), said)
        aside = library.with_suffix('.aside')
        library.rename(aside)
        said, status = run(python, 'rmw_tsuji')
        aside.rename(library)
        refused = status != 0 and said.startswith(f'RMW_IMPLEMENTATION is rmw_tsuji, and {library} is not there')
        # What mends it is Python too.
        refused = refused and 'Fatal' not in said
        check(f'a library that is not there ({distribution})', refused, said)
        module = next(prefix.glob('lib/python*/site-packages/ros_rmw_tsuji'))
        not_started_anew(distribution, python, module, library)
    finally:
        pip(python, 'uninstall', '--yes', 'ros-rmw-tsuji')
    check(f'nothing is left ({distribution})', not library.exists(), library)


def not_started_anew(distribution, python, module, library):
    """Python goes on, with a line, where starting it anew would have no effect."""
    with tempfile.TemporaryDirectory(prefix='a folder ') as folder:
        place = pathlib.Path(folder) / 'lib/python3/site-packages'
        shutil.copytree(module, place / module.name)
        shutil.copy(library, pathlib.Path(folder) / 'lib')
        code = f'import sys; sys.path.insert(0, {str(place)!r}); import ros_rmw_tsuji; print("goes on")'
        said = without_site(python, code)
        check(f'a path that LD_PRELOAD cannot name ({distribution})',
              said.startswith('goes on') and 'takes no path with a space' in said, said)
    code = (f'import os, sys; sys.path.insert(0, {str(module.parent)!r}); os.environ.pop("RMW_IMPLEMENTATION");'
            'import ros_rmw_tsuji as it; os.environ["RMW_IMPLEMENTATION"] = "rmw_tsuji";'
            'os.environ[it.STARTED] = f"{os.getpid()} {it.library()}"; it.start(); print("goes on")')
    said = without_site(python, code)
    check(f'what has no effect is done once ({distribution})', said.startswith('goes on') and 'has no effect' in said, said)


def without_site(python, code):
    """Return what a Python says that reads no .pth file."""
    environment = dict(os.environ, RMW_IMPLEMENTATION='rmw_tsuji')
    environment.pop('LD_PRELOAD', None)
    done = subprocess.run([python, '-I', '-S', '-c', code], env=environment, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def debian(path, library):
    """Look into a Debian package."""
    def field(name):
        return subprocess.run(['dpkg-deb', '-f', path, name], check=True, capture_output=True, text=True).stdout.strip()
    distribution = path.name.split('-')[1]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(['dpkg-deb', '-x', path, folder], check=True)
        prefix = pathlib.Path(folder) / 'opt/ros' / distribution
        found = prefix / 'lib/librmw_tsuji.so'
        check(f'{path.name}: the library', found.exists() and found.read_bytes() == library.read_bytes())
        index = prefix / 'share/ament_index/resource_index'
        kinds = ['packages', 'rmw_typesupport', 'rmw_typesupport_c', 'rmw_typesupport_cpp']
        check(f'{path.name}: the index', all((index / kind / 'rmw_tsuji').exists() for kind in kinds))
    needs = field('Depends')
    check(f'{path.name}: what it needs', f'ros-{distribution}-rmw,' in needs and 'libc6 (>= 2.' in needs, needs)


def main():
    """Try everything in a folder of packages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--packages', required=True, type=pathlib.Path)
    parser.add_argument('--python', action='append', default=[], metavar='DISTRIBUTION=PYTHON')
    parser.add_argument('--library', required=True, type=pathlib.Path, help='what was packed')
    asked = parser.parse_args()
    [path] = asked.packages.glob('ros_rmw_tsuji-*.whl')
    for named in asked.python:
        wheel(*named.split('=', 1), path)
    for found in sorted(asked.packages.glob('ros-*.deb')):
        debian(found, asked.library)
    failed = results.count(False)
    print(f'\ntest result: {"FAILED" if failed else "ok"}. {results.count(True)} passed; {failed} failed; 0 ignored; '
          '0 measured; 0 filtered out', flush=True)
    sys.exit(bool(failed))


if __name__ == '__main__':
    main()
