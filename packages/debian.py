#!/usr/bin/env python3
"""Packs the commands as a Debian package: with manual, completions and units of systemd.

Nothing is built here; scripts/dist builds the commands and calls this.
"""

import argparse
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
ARCHITECTURES = {62: 'amd64', 183: 'arm64'}
COMPLETIONS = {
    'bash': 'usr/share/bash-completion/completions/tsuji',
    'zsh': 'usr/share/zsh/vendor-completions/_tsuji',
    'fish': 'usr/share/fish/vendor_completions.d/tsuji.fish',
}
COPYRIGHT = '''Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: tsuji

Files: *
Copyright: The tsuji authors
License: Apache-2.0
 On Debian systems its text is in /usr/share/common-licenses/Apache-2.0. What the programs hold of others is in NOTICE
 beside this file, and each library with its licence in licences.txt.
'''


def architecture(program):
    """Return Debian's name of the architecture that a program is for."""
    machine = int.from_bytes(program.read_bytes()[18:20], 'little')
    if machine not in ARCHITECTURES:
        sys.exit(f'error: {program} is for the machine {machine} of ELF; allowed: {ARCHITECTURES}')
    return ARCHITECTURES[machine]


def needs(programs):
    """Return the libraries that programs load, as packages of Debian: those of glibc and of the compiler alone."""
    versions, libraries = set(), set()
    for program in programs:
        said = subprocess.run(['objdump', '-T', '-p', program], check=True, capture_output=True, text=True).stdout
        versions |= {tuple(map(int, it.split('.'))) for it in re.findall(r'GLIBC_([0-9.]+)', said)}
        libraries |= set(re.findall(r'NEEDED\s+(\S+)', said))
    of_glibc = ('libc.so', 'libm.so', 'libpthread.so', 'libdl.so', 'librt.so', 'ld-linux')
    packages = [f'libc6 (>= {".".join(map(str, max(versions)[:2]))})']
    for library in sorted(libraries):
        if library.startswith('libgcc_s.so'):
            packages.append('libgcc-s1')
        elif library.startswith('libstdc++.so'):
            packages.append('libstdc++6')
        elif not library.startswith(of_glibc):
            sys.exit(f'error: a program needs {library}; allowed: libraries of glibc and of the compiler')
    return packages


class Package:
    """The files of a package, to be filled and made."""

    def __init__(self, folder):
        """Start with nothing."""
        self.root = pathlib.Path(folder)
        self.root.chmod(0o755)

    def put(self, path, what, mode=0o644):
        """Put bytes, or a copy of a file, at a path."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, bytes):
            place.write_bytes(what)
        else:
            shutil.copyfile(what, place)
        place.chmod(mode)

    def put_packed(self, path, what):
        """Put bytes packed by gzip, as Debian has manuals and changelogs, the same at each making."""
        self.put(f'{path}.gz', gzip.compress(what, 9, mtime=0))

    def make(self, out, control, packing):
        """Make the package, packed as dpkg-deb is told by these flags, and return its path."""
        size = sum(it.stat().st_size for it in self.root.rglob('*') if it.is_file())
        said = self.root / 'DEBIAN/control'
        said.parent.mkdir()
        said.write_text(''.join(f'{key}: {value}\n' for key, value in {**control, 'Installed-Size': -(-size // 1024)}.items()))
        path = out / '{Package}_{Version}_{Architecture}.deb'.format(**control)
        subprocess.run(['dpkg-deb', '--root-owner-group', *packing, '--build', self.root, path], check=True, stdout=subprocess.DEVNULL)
        return path


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
        package = Package(folder)
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
        package.put(f'{documents}/copyright', COPYRIGHT.encode())
        package.put(f'{documents}/NOTICE', ROOT / 'NOTICE')
        package.put(f'{documents}/licences.txt', asked.licences)
        package.put_packed(f'{documents}/changelog', (ROOT / 'CHANGELOG.md').read_bytes())
        print(package.make(asked.out, {
            'Package': 'tsuji',
            'Version': asked.version,
            'Architecture': architecture(programs[0]),
            'Section': 'misc',
            'Priority': 'optional',
            'Maintainer': 'The tsuji authors <maintainers@tsuji.invalid>',
            'Depends': ', '.join(needs(programs)),
            'Description': 'ROS 2 messages, each flow by the transport that suits it\n'
                           ' The command tsuji: topics, services, actions, parameters, recordings, launch files and a\n'
                           ' bridge for web clients, without an installation of ROS 2 and beside one. It shows the\n'
                           ' transport of each flow and why it is that one. With the demo, `tsuji demo`.',
        }, ['-Zgzip', '-z1'] if asked.quick else ['-Zxz', '-z9', '-Sextreme']))


if __name__ == '__main__':
    os.umask(0o022)
    main()
