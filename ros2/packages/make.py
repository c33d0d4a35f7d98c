#!/usr/bin/env python3
"""Packs librmw_tsuji.so for those who have ROS 2 already: a wheel, and a Debian package for each distribution.

Nothing is built here; scripts/rmw-packages builds the library and calls this.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / 'packages'))

import deb  # noqa: E402

DISTRIBUTIONS = ['humble', 'jazzy', 'kilted', 'lyrical']
TYPESUPPORTS = {
    'rmw_typesupport_c': ['rosidl_typesupport_c', 'rosidl_typesupport_introspection_c'],
    'rmw_typesupport_cpp': ['rosidl_typesupport_cpp', 'rosidl_typesupport_introspection_cpp'],
}
SUMMARY = 'The ROS middleware interface by tsuji, each flow by the transport that suits it'
# What the library needs of ROS 2 is there where a node is.
NEEDS = ['rcutils', 'rmw', 'rosidl-runtime-c', 'rosidl-typesupport-introspection-c', 'rosidl-typesupport-introspection-cpp']
HOLDS = 'What the library holds of others\n is in NOTICE beside this file.'


def fixture(folder):
    """Build the library that keeps tests apart and return its path."""
    path = pathlib.Path(folder) / 'librmw_tsuji_test_fixture.so'
    subprocess.run([os.environ.get('CC', 'cc'), '-std=gnu11', '-O2', '-shared', '-fPIC', '-fvisibility=hidden', '-s',
                    ROOT / 'ros2/rmw_tsuji/test_fixture.c', '-o', path], check=True)
    return path


def files(library):
    """Return what is put below a prefix: a dictionary of paths and contents."""
    with tempfile.TemporaryDirectory() as folder:
        test_fixture = fixture(folder).read_bytes()
    index = 'share/ament_index/resource_index'
    found = {
        'lib/librmw_tsuji.so': library,
        'lib/librmw_tsuji_test_fixture.so': test_fixture,
        'share/rmw_tsuji/package.xml': (ROOT / 'ros2/rmw_tsuji/package.xml').read_bytes(),
        f'{index}/packages/rmw_tsuji': b'',
        f'{index}/rmw_typesupport/rmw_tsuji': ';'.join(sum(TYPESUPPORTS.values(), [])).encode(),
    }
    for kind, supports in TYPESUPPORTS.items():
        found[f'{index}/{kind}/rmw_tsuji'] = ';'.join(supports).encode()
    return found


def wheel(out, library, version):
    """Make the wheel and return its path."""
    major, minor = deb.glibc(library)
    tag = f'py3-none-manylinux_{major}_{minor}_{deb.machine(library)}'
    name = f'ros_rmw_tsuji-{version}'
    info = f'{name}.dist-info'
    content = {f'{name}.data/data/{path}': what for path, what in files(pathlib.Path(library).read_bytes()).items()}
    content['ros_rmw_tsuji/__init__.py'] = (HERE / 'ros_rmw_tsuji/__init__.py').read_bytes()
    # Names of such files are read in their order, and this one comes before the one that starts Python anew.
    content['ros_rmw_tsuji.pth'] = b'import ros_rmw_tsuji\n'
    for text in ['LICENSE', 'NOTICE']:
        content[f'{info}/licenses/{text}'] = (ROOT / text).read_bytes()
    content[f'{info}/WHEEL'] = f'Wheel-Version: 1.0\nGenerator: tsuji\nRoot-Is-Purelib: false\nTag: {tag}\n'.encode()
    content[f'{info}/METADATA'] = (
        f'Metadata-Version: 2.4\nName: ros-rmw-tsuji\nVersion: {version}\nSummary: {SUMMARY}\n'
        'License-Expression: Apache-2.0\nLicense-File: LICENSE\nLicense-File: NOTICE\nRequires-Python: >=3.10\n'
        'Description-Content-Type: text/markdown\n\n'
        'Goes with the ROS 2 of wheels, Jazzy or Kilted: `pip install ros-rmw-tsuji`, then `RMW_IMPLEMENTATION=rmw_tsuji`.\n'
    ).encode()
    record = ''
    for path, what in sorted(content.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(what).digest()).rstrip(b'=').decode()
        record += f'{path},sha256={digest},{len(what)}\n'
    content[f'{info}/RECORD'] = f'{record}{info}/RECORD,,\n'.encode()
    path = out / f'{name}-{tag}.whl'
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as archive:
        # The record comes last, as the format asks for.
        for inside in sorted(content, key=lambda it: (it.endswith('/RECORD'), it)):
            entry = zipfile.ZipInfo(inside, date_time=(2026, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if inside.endswith('.so') else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content[inside])
    return path


def debian(out, library, version, distribution):
    """Make the Debian package of a distribution and return its path."""
    package = f'ros-{distribution}-rmw-tsuji'
    major, minor = deb.glibc(library)
    needs = [f'ros-{distribution}-{it}' for it in NEEDS]
    needs += [f'libc6 (>= {major}.{minor})', 'libgcc-s1', 'libstdc++6']
    with tempfile.TemporaryDirectory() as folder:
        made = deb.Package(folder)
        for path, what in files(pathlib.Path(library).read_bytes()).items():
            made.put(f'opt/ros/{distribution}/{path}', what)
        made.put(f'usr/share/doc/{package}/NOTICE', ROOT / 'NOTICE')
        made.put(f'usr/share/doc/{package}/copyright', deb.copyright(HOLDS))
        return made.make(out, {
            'Package': package,
            'Version': version,
            'Architecture': deb.ARCHITECTURES[deb.machine(library)],
            'Section': 'misc',
            'Priority': 'optional',
            'Maintainer': deb.MAINTAINER,
            'Depends': ', '.join(needs),
            'Description': f'{SUMMARY}\n Nodes on rclcpp and rclpy use it with RMW_IMPLEMENTATION=rmw_tsuji.',
        })


def main():
    """Make what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--library', required=True, help='librmw_tsuji.so, stripped')
    parser.add_argument('--version', required=True, help='such as 0.2.0')
    parser.add_argument('--out', required=True, type=pathlib.Path, help='the folder for the packages')
    parser.add_argument('--wheel', action='store_true', help='make the wheel alone')
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    print(wheel(asked.out, asked.library, asked.version))
    if not asked.wheel:
        for distribution in DISTRIBUTIONS:
            print(debian(asked.out, asked.library, asked.version, distribution))


if __name__ == '__main__':
    if sys.version_info < (3, 9):
        sys.exit('Python 3.9 or newer is needed')
    os.umask(0o022)
    main()
