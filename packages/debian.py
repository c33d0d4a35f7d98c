#!/usr/bin/env python3
"""Packs what was built as Debian packages: the commands, the laboratory, a plug-in, the manual, the header of C.

Nothing is built here; scripts/dist builds what is packed and calls this. rmw_tsuji's packages are made by ros2/packages.
"""

import argparse
import os
import pathlib
import subprocess
import tempfile

import deb

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
COMPLETIONS = {
    'bash': 'usr/share/bash-completion/completions/tsuji',
    'zsh': 'usr/share/zsh/vendor-completions/_tsuji',
    'fish': 'usr/share/fish/vendor_completions.d/tsuji.fish',
}
HOLDS = {
    'linked': 'What is in it of others is in NOTICE\n beside this file, and each library with its licence in licences.txt.',
    'own': 'Nothing of others is in it.',
    'book': 'The style, scripts and fonts are of mdBook, under the MPL-2.0;\n those of others among them have their licences beside them.',
}
FAST_DDS = 'fastdds'
WHAT = {FAST_DDS: 'over Fast DDS', 'zenoh': 'over Zenoh', 'ros1': 'to nodes of ROS 1'}


def commands(package, asked):
    """Put the commands, with manual, completions and units of systemd, and return what the package says of itself."""
    programs = [asked.programs / 'tsuji', asked.programs / 'tsuji-demo']
    for program in programs:
        package.put(f'usr/bin/{program.name}', program, 0o755)
    with tempfile.TemporaryDirectory() as manual:
        subprocess.run([asked.speaks, 'man', manual], check=True, stdout=subprocess.DEVNULL)
        for page in sorted(pathlib.Path(manual).iterdir()):
            package.put_packed(f'usr/share/man/man1/{page.name}', page.read_bytes())
    for shell, path in COMPLETIONS.items():
        script = subprocess.run([asked.speaks, 'completions', shell], check=True, capture_output=True).stdout
        package.put(path, script)
    package.put_folder('usr/lib/systemd/user', HERE / 'systemd')
    package.put_folder('usr/share/tsuji/policies', ROOT / 'policies')
    package.put_folder('usr/share/tsuji/metrics', HERE / 'metrics')
    return {
        'Package': 'tsuji',
        'Architecture': deb.ARCHITECTURES[deb.machine(programs[0])],
        'Section': 'net',
        'Depends': ', '.join(deb.portable(programs)),
        'Suggests': 'tsuji-dds-security, tsuji-doc, tsuji-lab, tsuji-transport-fastdds, tsuji-transport-ros1, tsuji-transport-zenoh',
        'Description': 'ROS 2 messages, each flow by the transport that suits it\n'
                       ' The command tsuji: topics, services, actions, parameters, recordings,\n'
                       ' launch files and a bridge for web clients, without an installation of\n'
                       ' ROS 2 and beside one. It shows the transport of each flow and why it is\n'
                       ' that one. With a demonstration, `tsuji demo`.',
    }


def lab(package, asked):
    """Put the laboratory."""
    program = asked.programs / 'tsuji-lab'
    package.put('usr/bin/tsuji-lab', program, 0o755)
    return {
        'Package': 'tsuji-lab',
        'Architecture': deb.ARCHITECTURES[deb.machine(program)],
        'Section': 'net',
        'Depends': ', '.join(deb.portable([program])),
        'Recommends': f'tsuji (= {asked.version})',
        'Description': 'laboratory of tsuji, which measures transports\n'
                       ' `tsuji lab` measures latency, throughput, memory and loss of each transport\n'
                       ' on this machine, and `tsuji tune` proposes a policy by what it found.',
    }


def transport(package, asked):
    """Put a plug-in where every program of tsuji finds it."""
    package.put(f'usr/lib/{deb.multiarch(asked.library)}/tsuji/transports/libtsuji_transport_{asked.name}.so', asked.library)
    # Fast DDS is that of this system; what the others need is in the library.
    is_fast = asked.name == FAST_DDS
    needs = deb.installed(asked.library) if is_fast else deb.portable([asked.library])
    return {
        'Package': f'tsuji-transport-{asked.name}',
        'Architecture': deb.ARCHITECTURES[deb.machine(asked.library)],
        'Section': 'libs',
        'Depends': ', '.join(needs),
        'Enhances': 'tsuji',
        'Description': f'transport of tsuji {WHAT[asked.name]}\n'
                       f' A plug-in for programs of tsuji, its command among them: with it `{asked.name}`\n'
                       ' is on offer where a policy names it. `tsuji doctor` shows whether it works.',
    }


def dds_security(package, asked):
    """Put what secures RTPS where every program of tsuji finds it."""
    package.put(f'usr/lib/{deb.multiarch(asked.library)}/tsuji/transports/{asked.library.name}', asked.library)
    return {
        'Package': 'tsuji-dds-security',
        'Architecture': deb.ARCHITECTURES[deb.machine(asked.library)],
        'Section': 'libs',
        'Depends': ', '.join(deb.installed(asked.library)),
        'Enhances': 'tsuji',
        'Description': 'DDS Security for programs of tsuji\n'
                       ' Processes that a keystore of SROS2 secures load it, and no others: with it they\n'
                       ' meet other hosts and other ROS 2 nodes over RTPS, authenticated and encrypted\n'
                       ' as governance says. `tsuji doctor` shows whether it is found.',
    }


def development(package, _):
    """Put what a transport in C or C++ is built with."""
    package.put('usr/include/tsuji_transport.h', ROOT / 'cpp/include/tsuji_transport.h')
    package.put_folder('usr/share/doc/tsuji-dev/examples', ROOT / 'cpp/example')
    return {
        'Package': 'tsuji-dev',
        'Architecture': 'all',
        'Multi-Arch': 'foreign',
        'Section': 'libdevel',
        'Suggests': 'tsuji',
        'Description': 'header for transports of tsuji in C or C++\n'
                       ' The C interface of plug-ins, tsuji_transport.h, and a whole transport as an\n'
                       ' example. Programs with nodes are written in Rust or Python, or in C++ with\n'
                       ' rclcpp on rmw_tsuji.',
    }


def manual(package, asked):
    """Put the manual."""
    package.put_folder('usr/share/doc/tsuji-doc/html', asked.book)
    return {
        'Package': 'tsuji-doc',
        'Architecture': 'all',
        'Multi-Arch': 'foreign',
        'Section': 'doc',
        'Description': 'manual of tsuji\n'
                       ' Tutorials, how-to and reference, with search, for a browser:\n'
                       ' /usr/share/doc/tsuji-doc/html/index.html. Each command has its manual page in\n'
                       ' the package tsuji.',
    }


def main():
    """Make the package that is asked for."""
    every = argparse.ArgumentParser(add_help=False)
    every.add_argument('--version', required=True, help='such as 0.2.0')
    every.add_argument('--out', required=True, type=pathlib.Path, help='the folder for the package')
    every.add_argument('--quick', action='store_true', help='pack it quickly rather than small')
    linked = argparse.ArgumentParser(add_help=False)
    linked.add_argument('--licences', required=True, type=pathlib.Path, help='the list of what is linked, with its licences')
    programs = argparse.ArgumentParser(add_help=False)
    programs.add_argument('--programs', required=True, type=pathlib.Path, help='the folder with the programs, stripped')

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.set_defaults(holds='own')
    kinds = parser.add_subparsers(required=True)
    kind = kinds.add_parser('commands', parents=[every, linked, programs])
    kind.add_argument('--speaks', required=True, type=pathlib.Path, help='a tsuji of this version that runs here, for manual and completions')
    kind.set_defaults(put=commands)
    kind = kinds.add_parser('lab', parents=[every, linked, programs])
    kind.set_defaults(put=lab)
    kind = kinds.add_parser('transport', parents=[every])
    kind.add_argument('--licences', type=pathlib.Path, help='the list of what is linked, with its licences; without it nothing is')
    kind.add_argument('--name', required=True, choices=list(WHAT), help='the transport')
    kind.add_argument('--library', required=True, type=pathlib.Path, help='its plug-in, stripped')
    kind.set_defaults(put=transport)
    kind = kinds.add_parser('dds-security', parents=[every, linked])
    kind.add_argument('--library', required=True, type=pathlib.Path, help='what secures RTPS, stripped')
    kind.set_defaults(put=dds_security)
    kind = kinds.add_parser('manual', parents=[every])
    kind.add_argument('--book', required=True, type=pathlib.Path, help='the folder with the manual as mdBook makes it')
    kind.set_defaults(put=manual, licences=None, holds='book')
    kind = kinds.add_parser('dev', parents=[every])
    kind.set_defaults(put=development, licences=None)
    asked = parser.parse_args()

    asked.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        package = deb.Package(folder)
        said = asked.put(package, asked)
        documents = f'usr/share/doc/{said["Package"]}'
        package.put(f'{documents}/copyright', deb.copyright(HOLDS['linked' if asked.licences else asked.holds]))
        if asked.licences:
            package.put(f'{documents}/NOTICE', ROOT / 'NOTICE')
            package.put(f'{documents}/licences.txt', asked.licences)
        changes = (ROOT / 'CHANGELOG.md').read_text()
        package.put_packed(f'{documents}/changelog', deb.changelog(said['Package'], asked.version, changes))
        package.put_packed(f'{documents}/CHANGELOG.md', changes.encode())
        control = {'Version': asked.version, 'Priority': 'optional', 'Maintainer': deb.MAINTAINER, **said}
        print(package.make(asked.out, control, is_small=not asked.quick))


if __name__ == '__main__':
    os.umask(0o022)
    main()
