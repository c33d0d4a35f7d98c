"""What Debian packages of tsuji are made by, whatever is in them."""

import datetime
import email.utils
import gzip
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MACHINES = {62: 'x86_64', 183: 'aarch64'}
ARCHITECTURES = {'x86_64': 'amd64', 'aarch64': 'arm64'}
MAINTAINER = 'The tsuji authors <maintainers@tsuji.invalid>'


def machine(binary):
    """Return the machine that a program or library is for, as its ELF header says."""
    number = int.from_bytes(pathlib.Path(binary).read_bytes()[18:20], 'little')
    if number not in MACHINES:
        sys.exit(f'error: {binary} is for the machine {number} of ELF; allowed: {MACHINES}')
    return MACHINES[number]


def glibc(binary):
    """Return the oldest version of glibc that a program or library can be loaded with."""
    symbols = subprocess.run(['objdump', '-T', binary], check=True, capture_output=True, text=True).stdout
    versions = {tuple(map(int, it.split('.'))) for it in re.findall(r'GLIBC_([0-9.]+)', symbols)}
    return max(versions)[:2]


def multiarch(binary):
    """Return the folder below /usr/lib for libraries of this machine."""
    return f'{machine(binary)}-linux-gnu'


def portable(binaries):
    """Return, as packages of Debian, what programs and libraries load that are to run on every system: glibc and the compiler's."""
    libraries = set()
    for binary in binaries:
        said = subprocess.run(['objdump', '-p', binary], check=True, capture_output=True, text=True).stdout
        libraries |= set(re.findall(r'NEEDED\s+(\S+)', said))
    of_glibc = ('libc.so', 'libm.so', 'libpthread.so', 'libdl.so', 'librt.so', 'ld-linux')
    oldest = max(glibc(binary) for binary in binaries)
    packages = [f'libc6 (>= {".".join(map(str, oldest))})']
    for library in sorted(libraries):
        if library.startswith('libgcc_s.so'):
            packages.append('libgcc-s1')
        elif library.startswith('libstdc++.so'):
            packages.append('libstdc++6')
        elif not library.startswith(of_glibc):
            sys.exit(f'error: {library} is needed; allowed: libraries of glibc and of the compiler')
    return packages


def installed(binary):
    """Return the packages that a library of this system loads others from, with their versions, as dpkg knows them."""
    with tempfile.TemporaryDirectory() as folder:
        control = pathlib.Path(folder) / 'debian/control'
        control.parent.mkdir()
        control.write_text('Source: tsuji\n\nPackage: tsuji\nArchitecture: any\n')
        said = subprocess.run(['dpkg-shlibdeps', '-O', pathlib.Path(binary).resolve()], cwd=folder, check=True, capture_output=True,
                              text=True).stdout
    return [said.strip().removeprefix('shlibs:Depends=')]


def copyright(holds):
    """Return the file that Debian wants, which ends by what the package holds of others, in lines of their own."""
    return (
        'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n'
        'Upstream-Name: tsuji\n\nFiles: *\nCopyright: 2026 The tsuji authors\nLicense: Apache-2.0\n'
        f' On Debian systems its text is in /usr/share/common-licenses/Apache-2.0. {holds}\n'
    ).encode()


def changelog(package, version, text):
    """Return what Debian wants of changes, of which the project's own changelog tells more."""
    day = re.search(r'^## \[[0-9.]+\] - (\S+)$', text, re.MULTILINE)
    if not day:
        sys.exit('error: CHANGELOG.md has no version with a day')
    day = datetime.datetime.fromisoformat(day[1]).replace(tzinfo=datetime.timezone.utc)
    return (
        f'{package} ({version}) unstable; urgency=medium\n\n  * What has changed is in CHANGELOG.md.gz.\n\n'
        f' -- {MAINTAINER}  {email.utils.format_datetime(day)}\n'
    ).encode()


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

    def put_folder(self, path, folder):
        """Put a copy of the files of a folder, and of those below it, below a path."""
        for file in sorted(it for it in folder.rglob('*') if it.is_file()):
            self.put(f'{path}/{file.relative_to(folder)}', file)

    def make(self, out, control, is_small=True):
        """Make the package, packed small or quickly, and return its path."""
        size = sum(it.stat().st_size for it in self.root.rglob('*') if it.is_file())
        said = self.root / 'DEBIAN/control'
        said.parent.mkdir()
        said.write_text(''.join(f'{key}: {value}\n' for key, value in {**control, 'Installed-Size': -(-size // 1024)}.items()))
        path = out / '{Package}_{Version}_{Architecture}.deb'.format(**control)
        build = ['dpkg-deb', '--root-owner-group', '-Znone' if is_small else '-Zgzip', '-z1', '--build', self.root, path]
        subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
        if is_small:
            pack(path, ['--x86'] if control['Architecture'] == 'amd64' else [])
        return path


def pack(path, filters):
    """Pack a package anew as dpkg-deb cannot: by xz with a filter for programs, which makes them 4 % smaller.

    Whatever reads packages knows that of x86-64. That of arm64 is not known before xz 5.4, of 2022.
    """
    with tempfile.TemporaryDirectory() as folder:
        names = ['debian-binary', 'control.tar', 'data.tar']
        subprocess.run(['ar', 'x', path.resolve()], cwd=folder, check=True)
        subprocess.run(['xz', *filters, '--lzma2=preset=9e', *names[1:]], cwd=folder, check=True)
        path.unlink()
        members = [names[0], *(f'{name}.xz' for name in names[1:])]
        subprocess.run(['ar', 'qcSD', path.resolve(), *members], cwd=folder, check=True)
