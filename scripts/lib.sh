# shellcheck shell=bash
# Sourced by the scripts beside it: where things are, how a step is said, run and counted.

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly ROOT
cd "$ROOT"

# rustup puts cargo here; a shell that was open during its installation does not know it yet.
if ! command -v cargo >/dev/null && [ -x "${HOME:-}/.cargo/bin/cargo" ]; then
    PATH="$HOME/.cargo/bin:$PATH"
fi

# Where the toolchain of rust-toolchain.toml is not to be had, the default one is taken.
if command -v rustup >/dev/null && ! cargo --version >/dev/null 2>&1; then
    default=$(cd / && rustup default 2>/dev/null | cut -d ' ' -f 1)
    if [ -n "$default" ]; then
        printf 'note: the toolchain of rust-toolchain.toml is not to be had here; taking %s\n' "$default" >&2
        export RUSTUP_TOOLCHAIN=$default
    fi
    unset default
fi

TARGET_DIR=${CARGO_TARGET_DIR:-$ROOT/target}
readonly TARGET_DIR
readonly LOGS=$TARGET_DIR/logs
# What scripts/bootstrap installs by scripts/tools.txt.
readonly TOOLS=$TARGET_DIR/tools
mkdir -p "$LOGS"

# What a script returns when this machine cannot do its work at all, as in automake.
# shellcheck disable=SC2034  # read by the scripts that source this file
readonly NOT_POSSIBLE_HERE=77

if [ "${CI:-}" = true ]; then
    export CARGO_INCREMENTAL=0
fi
# `step` pipes the output into a log, which would cost the colours.
if [ -t 1 ]; then
    export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-always}
fi

SCRIPT=$(basename "$0")
STEPS=()
FAILED=0
: >"$LOGS/$SCRIPT.log"

say() {
    printf '%s\n' "$*"
}

# step NAME COMMAND… : runs it, shows and logs its output, remembers how it ended. Later steps run all the same.
step() {
    local name=$1 status=0 start=$SECONDS
    shift
    say
    say "== $name"
    "$@" </dev/null 2>&1 | tee -a "$LOGS/$SCRIPT.log" || status=$?
    case $status in
    0) STEPS+=("$(printf '%-22s ok       %5d s' "$name" $((SECONDS - start)))") ;;
    "$NOT_POSSIBLE_HERE") STEPS+=("$(printf '%-22s NOT RUN  %5d s' "$name" $((SECONDS - start)))") ;;
    *)
        STEPS+=("$(printf '%-22s FAILED   %5d s' "$name" $((SECONDS - start)))")
        FAILED=1
        ;;
    esac
}

# finish: says how every step ended, adds up the test runners' closing lines, exits 1 when anything failed. What it says
# stays in a file, so that a run of several targets can say it again at its end.
finish() {
    summary | tee "$LOGS/$SCRIPT.summary"
    [ "$FAILED" -eq 0 ]
}

summary() {
    local plain=$LOGS/$SCRIPT.plain
    sed 's/\x1b\[[0-9;]*m//g' "$LOGS/$SCRIPT.log" >"$plain"
    say
    say "== make $SCRIPT"
    if [ ${#STEPS[@]} -gt 0 ]; then
        printf '   %s\n' "${STEPS[@]}"
    fi
    awk '
        /^watchdog: .* was killed$/ { killed++ }
        /^test result: / { gsub(";", ""); runs++; passed += $4; failed += $6; ignored += $8 }
        END {
            if (runs) printf "   tests: %d passed, %d failed, %d ignored, by %d test runners\n", passed, failed, ignored, runs
            if (killed) printf "   %d test runners hung and were killed\n", killed
        }' "$plain"
    # What a run leaves on the disk, and what the disk has left: a full one fails in words that do not name it.
    printf '   disk: %s here, %s free\n' "$(du -sh "$TARGET_DIR" | cut -f 1)" \
        "$(df -Ph "$TARGET_DIR" | awk 'NR == 2 { print $4 }')"
    if [ "$FAILED" -ne 0 ]; then
        # The names of what failed, and the first words each said about it.
        grep -E -A 2 '^error|^test .* FAILED|panicked at| hangs$|^hang: |^watchdog: ' "$plain" | head -n 80 | sed 's/^/   | /' || true
        say "   FAILED"
        return
    fi
    say "   passed"
}

# cargo_watched COMMAND ARGUMENT… : cargo, with each test binary under the watchdog that cuts a hang (never a duration).
cargo_watched() {
    local command=$1 host xtask
    shift
    host=$(rustc -vV | sed -n 's/^host: //p')
    xtask=$(cargo xtask path)
    cargo --config "target.$host.runner=[\"$xtask\", \"watch\", \"--\"]" "$command" "$@"
}

# in_workspace FOLDER CARGO COMMAND ARGUMENT… : `cargo` or `cargo_watched` in a workspace beside the main one, with what is
# built in one place: what two of them have in common is built once.
in_workspace() {
    local folder=$1 cargo=$2 command=$3
    shift 3
    CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$TARGET_DIR} "$cargo" "$command" --manifest-path "$folder/Cargo.toml" "$@"
}

# in_lab CARGO COMMAND ARGUMENT… : the same in the workspace of the laboratory. Its programs go beside `tsuji`.
in_lab() {
    in_workspace lab "$@"
}

# licences FOLDER : what the workspace there depends on has a licence that deny.toml allows, its own where it has one, and comes
# from crates.io. Whether something is known against it needs a list that is fetched, and is asked by scripts/lint.
licences() {
    local config=$1/deny.toml
    [ -f "$config" ] || config=deny.toml
    "$TOOLS/bin/cargo-deny" --config "$ROOT/$config" --manifest-path "$1/Cargo.toml" --locked --log-level error \
        check --hide-inclusion-graph licenses bans sources
}

# lab_lints : what the laboratory must pass without a test.
lab_lints() {
    cargo fmt --manifest-path lab/Cargo.toml --check && licences lab &&
        in_lab cargo clippy --all-targets --locked -- -D warnings
}

# own_messages_lints : what the example of own messages must pass without a test. Whatever a crate warns of, generated code is
# still.
own_messages_lints() {
    local folder=examples/own-messages
    cargo fmt --manifest-path $folder/Cargo.toml --check && licences $folder &&
        in_workspace $folder cargo clippy --all-targets --locked -- -D warnings -W missing_docs -W unreachable_pub \
            -W unnameable_types -W unused_qualifications -W clippy::pedantic
}

# members CRATE… : prints `--package CRATE` for those that are in the workspace.
members() {
    local name
    for name in "$@"; do
        if [ -f "crates/$name/Cargo.toml" ]; then
            printf -- '--package\n%s\n' "$name"
        fi
    done
}

# members_with PATTERN : prints `--package CRATE` for those whose sources match.
members_with() {
    { grep -rlE --include '*.rs' "$1" crates || true; } | cut -d / -f 2 | sort -u | while read -r name; do
        printf -- '--package\n%s\n' "$name"
    done
}

# Every workspace's lock file fits what its packages need now: those beside the main one are built only by what runs long.
lock_files() {
    local status=0 file
    while read -r file; do
        if ! (cd "$(dirname "$file")" && cargo update --workspace --locked --quiet); then
            say "$file is stale: run \`cargo update --workspace\` in its folder"
            status=1
        fi
    done < <(find . -name target -prune -o -name Cargo.lock -print | sort)
    return $status
}

# newer_or_same A B : whether version A is at least B.
newer_or_same() {
    [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]
}

# rust_version_min: the oldest Rust that the workspace states to work with.
rust_version_min() {
    sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml
}

# needs COMMAND=PACKAGE… : installs with apt-get the packages whose command (or absolute path) is missing.
needs() {
    local pair missing=() as_root=()
    for pair in "$@"; do
        local thing=${pair%%=*} package=${pair#*=}
        case $thing in
        /*) [ -e "$thing" ] || missing+=("$package") ;;
        *) PATH="$PATH:/usr/sbin:/sbin" command -v "$thing" >/dev/null || missing+=("$package") ;;
        esac
    done
    if [ ${#missing[@]} -eq 0 ]; then
        return
    fi
    if ! command -v apt-get >/dev/null; then
        say "error: missing: ${missing[*]} (Debian's names), and there is no apt-get here; please install them." >&2
        return 1
    fi
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            say "error: missing: ${missing[*]}. As root: apt-get install ${missing[*]}" >&2
            return 1
        fi
        as_root=(sudo)
        # Without a terminal nobody can type a password: fail at once and say so.
        [ -t 0 ] || as_root=(sudo -n)
    fi
    say "Installing with apt-get: ${missing[*]}"
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
    if ! { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; } \
        >"$LOGS/apt.log" 2>&1; then
        tail -n 20 "$LOGS/apt.log" >&2
        say "error: apt-get could not install: ${missing[*]}" >&2
        return 1
    fi
}
