#!/usr/bin/env python3
"""Packs the commands as a Debian package: with manual, completions and units of systemd.

Nothing is built here; scripts/dist builds the commands and calls this.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import deb

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
COMPLETIONS = {
    'bash': 'usr/share/bash-completion/completions/tsuji',
    'zsh': 'usr/share/zsh/vendor-completions/_tsuji',
    'fish': 'usr/share/fish/vendor_completions.d/tsuji.fish',
}
HOLDS = 'What the programs hold of others is in NOTICE\n beside this file, and each library with its licence in licences.txt.'


def needs(programs):
    """Return the libraries that programs load, as packages of Debian: those of glibc and of the compiler alone."""
    libraries = set()
    for program in programs:
        said = subprocess.run(['objdump', '-p', program], check=True, capture_output=True, text=True).stdout
        libraries |= set(re.findall(r'NEEDED\s+(\S+)', said))
    of_glibc = ('libc.so', 'libm.so', 'libpthread.so', 'libdl.so', 'librt.so', 'ld-linux')
    oldest = max(deb.glibc(program) for program in programs)
    packages = [f'libc6 (>= {".".join(map(str, oldest))})']
    for library in sorted(libraries):
        if library.startswith('libgcc_s.so'):
            packages.append('libgcc-s1')
        elif library.startswith('libstdc++.so'):
            packages.append('libstdc++6')
        elif not library.startswith(of_glibc):
            sys.exit(f'error: a program needs {library}; allowed: libraries of glibc and of the compiler')
    return packages


def main():
    """Make the package."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--programs', required=True, type=pathlib.Path, help='the folder with tsuji and tsuji-demo, stripped')
    parser.add_argument('--speaks', required=True, type=pathlib.Path, help='a tsuji of this version that runs here, for manual and completions')
    parser.add_argument('--licences', required=True, type=pathlib.Path, help='the list of what is linked, with its licences')
    parser.add_argument('--version', required=True, help='such as 0.2.0')
    parser.add_argument('--out', required=True, type=pathlib.Path, help='the folder for the package')
    parser.add_argument('--quick', action='store_true', help='pack it quickly rather than small')
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    programs = [asked.programs / 'tsuji', asked.programs / 'tsuji-demo']
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as manual:
        package = deb.Package(folder)
        for program in programs:
            package.put(f'usr/bin/{program.name}', program, 0o755)
        subprocess.run([asked.speaks, 'man', manual], check=True, stdout=subprocess.DEVNULL)
        for page in sorted(pathlib.Path(manual).iterdir()):
            package.put_packed(f'usr/share/man/man1/{page.name}', page.read_bytes())
        for shell, path in COMPLETIONS.items():
            script = subprocess.run([asked.speaks, 'completions', shell], check=True, capture_output=True).stdout
            package.put(path, script)
        for unit in sorted((HERE / 'systemd').iterdir()):
            package.put(f'usr/lib/systemd/user/{unit.name}', unit)
        for policy in sorted((ROOT / 'policies').iterdir()):
            package.put(f'usr/share/tsuji/policies/{policy.name}', policy)
        documents = 'usr/share/doc/tsuji'
        package.put(f'{documents}/copyright', deb.copyright(HOLDS))
        package.put(f'{documents}/NOTICE', ROOT / 'NOTICE')
        package.put(f'{documents}/licences.txt', asked.licences)
        package.put_packed(f'{documents}/changelog', (ROOT / 'CHANGELOG.md').read_bytes())
        print(package.make(asked.out, {
            'Package': 'tsuji',
            'Version': asked.version,
            'Architecture': deb.ARCHITECTURES[deb.machine(programs[0])],
            'Section': 'misc',
            'Priority': 'optional',
            'Maintainer': deb.MAINTAINER,
            'Depends': ', '.join(needs(programs)),
            'Description': 'ROS 2 messages, each flow by the transport that suits it\n'
                           ' The command tsuji: topics, services, actions, parameters, recordings, launch files and a\n'
                           ' bridge for web clients, without an installation of ROS 2 and beside one. It shows the\n'
                           ' transport of each flow and why it is that one. With the demo, `tsuji demo`.',
        }, ['-Zgzip', '-z1'] if asked.quick else ['-Zxz', '-z9', '-Sextreme']))


if __name__ == '__main__':
    os.umask(0o022)
    main()
