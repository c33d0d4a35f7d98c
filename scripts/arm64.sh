# shellcheck shell=bash
# Sourced after lib.sh by the scripts that build for arm64 on x86-64: what that takes, from rustup or from Debian.

readonly TRIPLE=aarch64-unknown-linux-gnu

# arm64_rust : lets cargo build for arm64 from here on; fails where nobody offers Rust's standard library for it.
arm64_rust() {
    has_standard_library || from_rustup || from_debian
}

# arm64_python FOLDER : Debian's Python for arm64 with what numpy needs, unpacked there, to be run by the emulator.
arm64_python() {
    local dir=$TARGET_DIR/arm64-python deb
    [ ! -e "$1/usr/bin/python3" ] || return 0
    say "arm64: getting Debian's Python for arm64"
    # As on a machine where nothing is installed, so that all it needs comes too.
    debian_lists "$dir" -o APT::Architecture=arm64 -o APT::Architectures::=arm64 || return 1
    rm -f "$dir"/cache/archives/*.deb
    apt-get "${APT[@]}" install --yes --download-only --no-install-recommends python3-minimal libpython3-stdlib libstdc++6 >/dev/null || return 1
    for deb in "$dir"/cache/archives/*.deb; do
        dpkg-deb -x "$deb" "$1" || return 1
    done
}

has_standard_library() {
    local dir
    dir=$("${RUSTC:-rustc}" --print target-libdir --target "$TRIPLE") && compgen -G "$dir/libstd-*" >/dev/null
}

from_rustup() {
    command -v rustup >/dev/null || return 1
    say "arm64: asking rustup for the standard library of $TRIPLE"
    timeout 300 rustup target add "$TRIPLE" && has_standard_library
}

# debian_lists FOLDER OPTION… : Debian's lists of packages, in that folder; sets APT to the options of apt by which it knows them
# alone. The system and its list of architectures stay as they are.
debian_lists() {
    command -v apt-get >/dev/null || return 1
    local dir=$1
    shift
    mkdir -p "$dir"/{lists,cache/archives/partial,debs}
    : >"$dir/status"
    APT=(-qq -o "Dir::State::Lists=$dir/lists" -o "Dir::Cache=$dir/cache" -o "Dir::State::status=$dir/status" -o Debug::NoLocking=1
        -o "APT::Sandbox::User=$(id -un)" "$@")
    # A third party's source without arm64 makes the update fail in part; what matters is asked next.
    apt-get "${APT[@]}" update || true
}

# Debian builds the compiler for its web browsers and brings it up to date in its stable releases. Its arm64 library
# goes with its x86-64 compiler of the same version, so both are unpacked into the target directory.
from_debian() {
    local dir=$TARGET_DIR/arm64-rust
    say "arm64: looking for Debian's compiler with the standard library of arm64"
    debian_lists "$dir" -o APT::Architectures::=amd64 -o APT::Architectures::=arm64 || return 1
    local compiler library version
    for compiler in rustc-web rustc; do
        library=${compiler/rustc/libstd-rust}
        version=$(apt-cache "${APT[@]}" policy "$library-dev:arm64" | sed -n 's/^ *Candidate: \([0-9.]*\).*/\1/p')
        if [ -n "$version" ] && newer_or_same "$version" "$(rust_version_min)"; then
            break
        fi
        version=
    done
    [ -n "$version" ] || return 1

    local shared=$library-${version%.*} llvm
    llvm=$(apt-cache "${APT[@]}" show "$shared" | grep -o 'libllvm[0-9.]*' | head -n 1)
    say "arm64: unpacking $compiler $version"
    (cd "$dir/debs" && rm -f ./*.deb &&
        apt-get "${APT[@]}" download "$compiler" "$shared" "$library-dev" "$library-dev:arm64" "$llvm") || return 1
    local deb
    for deb in "$dir"/debs/*.deb; do
        dpkg-deb -x "$deb" "$dir/root"
    done
    cat >"$dir/rustc" <<EOF
#!/bin/sh
LD_LIBRARY_PATH="$dir/root/usr/lib/x86_64-linux-gnu" exec "$dir/root/usr/bin/rustc" "\$@"
EOF
    chmod +x "$dir/rustc"
    # What another compiler built is of no use to it, nor the other way round.
    export RUSTC=$dir/rustc CARGO_TARGET_DIR=$dir/target
    has_standard_library
}
