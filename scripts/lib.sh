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

# Where Cyclone DDS is built once for all workspaces and profiles of this checkout.
TSUJI_CYCLONEDDS_BUILD=${TSUJI_CYCLONEDDS_BUILD:-$(cd "$TARGET_DIR" && pwd)/cyclonedds}
export TSUJI_CYCLONEDDS_BUILD

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
# The steps that are asked for, all where there are none; and the names of those that there are, with hyphens for spaces.
ASKED=()
KNOWN=()
# What runs beside the steps: `step NAME` or `ahead NAME`, its commands, and the group of processes that runs it.
BESIDE=()
BESIDE_COMMANDS=()
BESIDE_GROUP=
FAILED=0
: >"$LOGS/$SCRIPT.log"
rm -f "$LOGS/$SCRIPT".beside-*

say() {
    printf '%s\n' "$*"
}

# only STEP… : of the steps that follow, runs these alone.
only() {
    ASKED=("$@")
}

# is_asked_for NAME : whether this step is to be run.
is_asked_for() {
    local name=${1// /-} asked
    KNOWN+=("$name")
    [ ${#ASKED[@]} -gt 0 ] || return 0
    for asked in "${ASKED[@]}"; do
        [ "${asked// /-}" != "$name" ] || return 0
    done
    return 1
}

# step NAME COMMAND… : runs it, shows and logs its output, remembers how it ended. Later steps run all the same.
step() {
    is_asked_for "$1" || return 0
    run_step "$@"
}

run_step() {
    local name=$1 status=0 start=$SECONDS
    shift
    has_begun "$name"
    say
    say "== $name"
    "$@" </dev/null 2>&1 | tee -a "$LOGS/$SCRIPT.log" || status=$?
    note_end "$name" "$status" $((SECONDS - start))
    # Whoever cuts a run short finds in what it said how far it came, and what took its time.
    say "-- ${STEPS[-1]}, at $(date '+%H:%M:%S')"
}

# note_end NAME STATUS SECONDS [WORDS] : remembers how a step ended, for the summary.
note_end() {
    local word=FAILED
    case $2 in
    0) word=ok ;;
    "$NOT_POSSIBLE_HERE") word='NOT RUN' ;;
    *) FAILED=1 ;;
    esac
    STEPS+=("$(printf '%-22s %-8s %5d s%s' "$1" "$word" "$3" "${4:-}")")
}

# Tests wait most of their time. What is begun beside them has what they leave of the processors.

# beside NAME COMMAND… : a step that needs nothing of those that follow, nor they of it. `start_beside` begins it; `finish`
# waits for it, and says how it ended.
beside() {
    put_beside step "$@"
}

# ahead NAME COMMAND… : begins what the step of this name builds, unless that has begun itself, so that it is there when its
# turn comes. How it ends, the step tells.
ahead() {
    put_beside ahead "$@"
}

# put_beside KIND NAME COMMAND… : puts it behind those that are to run beside others.
put_beside() {
    is_asked_for "$2" || return 0
    BESIDE+=("$1 $2")
    BESIDE_COMMANDS+=("${*:3}")
}

# has_begun NAME : says to what runs beside that nothing is to go ahead for this step any more.
has_begun() {
    [ -z "$BESIDE_GROUP" ] || say "$1" >>"$LOGS/$SCRIPT.begun"
}

# start_beside : begins all that is to run beside the steps that follow, one after the other. It ends with this script.
start_beside() {
    [ ${#BESIDE[@]} -gt 0 ] || return 0
    : >"$LOGS/$SCRIPT.begun"
    # A group of its own, so that all that it has started can be ended.
    set -m
    run_beside &
    set +m
    BESIDE_GROUP=$!
    trap end_beside EXIT
}

run_beside() {
    local index status start
    trap - EXIT
    # The scheduler's own class for that; where there is none, the lowest priority.
    chrt --idle --pid 0 "$BASHPID" >/dev/null 2>&1 || renice --priority 19 "$BASHPID" >/dev/null 2>&1 || true
    for index in "${!BESIDE[@]}"; do
        if [[ ${BESIDE[index]} == "ahead "* ]] && grep -qxF "${BESIDE[index]#ahead }" "$LOGS/$SCRIPT.begun"; then
            continue
        fi
        status=0
        start=$SECONDS
        # shellcheck disable=SC2086  # words
        ${BESIDE_COMMANDS[index]} </dev/null >"$LOGS/$SCRIPT.beside-$index.log" 2>&1 || status=$?
        say "$status $((SECONDS - start))" >"$LOGS/$SCRIPT.beside-$index.end"
    done
}

end_beside() {
    kill -TERM -- "-$BESIDE_GROUP" 2>/dev/null || true
}

# finish_beside : waits for the steps that run beside the others, shows and logs what they wrote, remembers how they ended.
finish_beside() {
    local index name status seconds
    [[ " ${BESIDE[*]}" == *" step "* ]] || return 0
    wait "$BESIDE_GROUP" || true
    for index in "${!BESIDE[@]}"; do
        name=${BESIDE[index]#step }
        [ "$name" != "${BESIDE[index]}" ] || continue
        say
        say "== $name"
        tee -a "$LOGS/$SCRIPT.log" <"$LOGS/$SCRIPT.beside-$index.log" || true
        # Where something ended all of them there is none.
        read -r status seconds <"$LOGS/$SCRIPT.beside-$index.end" || status=1 seconds=0
        note_end "$name" "$status" "$seconds" " beside others"
    done
}

# changed_step NAME INPUTS COMMAND… : a step that is not run again while what it tests is as it was when it passed here. INPUTS
# are packages, folders with a workspace, and folders or files after `--`; the scripts and what pins versions are always among
# them. TSUJI_ALL_STEPS=1 runs it in any case, as `make soak` does.
changed_step() {
    local name=$1 digest passed
    is_asked_for "$name" || return 0
    digest=$(digest_of "$2") || digest=
    passed=$TARGET_DIR/passed/${name// /-}
    shift 2
    if [ "${TSUJI_ALL_STEPS:-}" != 1 ] && [ -n "$digest" ] && [ "$digest" = "$(head -n 1 "$passed" 2>/dev/null)" ]; then
        has_begun "$name"
        say
        say "== $name: unchanged since it passed on $(sed -n 2p "$passed"); TSUJI_ALL_STEPS=1 runs it"
        STEPS+=("$(printf '%-22s unchanged%5d s' "$name" 0)")
        return
    fi
    rm -f "$passed"
    ! is_too_late "$name" || return 0
    run_step "$name" "$@"
    if [ -n "$digest" ] && [[ ${STEPS[-1]} == *" ok "* ]]; then
        mkdir -p "$TARGET_DIR/passed"
        printf '%s\n%s\n' "$digest" "$(date -u '+%Y-%m-%d %H:%M')" >"$passed"
    fi
}

# is_too_late NAME [SECONDS] : whether it is later than TSUJI_STEPS_UNTIL, in seconds since 1970, or than so long before. Then the step is
# not to begin, which is said.
is_too_late() {
    [ -n "${TSUJI_STEPS_UNTIL:-}" ] && [ "$(date +%s)" -ge $((TSUJI_STEPS_UNTIL - ${2:-0})) ] || return 1
    has_begun "$1"
    say
    say "== $1: NOT RUN: it is too late for it to end in time"
    STEPS+=("$(printf '%-22s NOT RUN: too late' "$1")")
}

# digest_of INPUTS : prints one number of all that is in them, for `changed_step`; fails outside a working copy of git.
digest_of() {
    local packages paths=() folders
    packages=${1%%--*}
    [ "$packages" = "$1" ] || read -r -a paths <<<"${1#*--}"
    # shellcheck disable=SC2086  # words
    folders=$(env -u RUSTC CARGO_TARGET_DIR="$TARGET_DIR" cargo xtask inputs $packages) || return 1
    mapfile -t -O "${#paths[@]}" paths <<<"$folders"
    # Every manifest has a say in which features what is tested is built with.
    paths+=(':(glob)crates/*/Cargo.toml' xtask/Cargo.toml)
    paths+=(scripts policies cpp .cargo Cargo.toml Cargo.lock rust-toolchain.toml clippy.toml rustfmt.toml deny.toml)
    git ls-files -z --cached --others --exclude-standard -- "${paths[@]}" >"$LOGS/inputs" || return 1
    { "${RUSTC:-rustc}" -vV && printf '%s\n' "${ROS_DISTRO:-}" "${AMENT_PREFIX_PATH:-}" && sort -zu "$LOGS/inputs" | xargs -0 sha256sum 2>&1; } | sha256sum | cut -d ' ' -f 1
}

# finish: says how every step ended, adds up the test runners' closing lines, exits 1 when anything failed. What it says
# stays in a file, so that a run of several targets can say it again at its end.
finish() {
    local asked
    finish_beside
    for asked in "${ASKED[@]}"; do
        if [[ " ${KNOWN[*]} " != *" ${asked// /-} "* ]]; then
            say "error: there is no step $asked; allowed: ${KNOWN[*]}" >&2
            FAILED=1
        fi
    done
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
        # The names of what failed, and the first words each said about it; of Python that hung, where its threads were.
        awk '
            # What follows says of a program that crashed by which signal.
            /^error: test failed/ { lines = 3; print; next }
            /^error|^test .* FAILED|panicked at| hangs$|^hang: |^watchdog: / { lines = 3 }
            /^Timeout \(/ { lines = 40 }
            lines-- > 0' "$plain" | head -n 160 | sed 's/^/   | /' || true
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

# What only reads the code, as clippy does, keeps what it finds apart from what is built, so that either can go on beside the
# other.
readonly CHECKED=$TARGET_DIR/checked

# clippy : the lints of the workspace, those of the tests too that run where they are named alone.
clippy() {
    CARGO_TARGET_DIR=$CHECKED cargo clippy --workspace --all-targets --locked -- -D warnings &&
        CARGO_TARGET_DIR=$CHECKED cargo clippy --workspace --test fastdds --test zenoh --locked -- -D warnings
}

# documentation : a link that leads nowhere, or text that rustdoc takes for something else, fails here.
documentation() {
    RUSTDOCFLAGS="-D warnings" CARGO_TARGET_DIR=$CHECKED cargo doc --workspace --no-deps --locked
}

# rmw_library : prints where librmw_tsuji.so is, built as `make test` builds it, so that it is there already: any test of its
# package brings it.
rmw_library() {
    cargo test --no-run --quiet --workspace --locked --test each >&2 && printf '%s\n' "$TARGET_DIR/debug/deps/librmw_tsuji.so"
}

# in_workspace FOLDER CARGO COMMAND ARGUMENT… : `cargo` or `cargo_watched` in a workspace beside the main one, with what is
# built in one place: what two of them have in common is built once.
in_workspace() {
    local folder=$1 cargo=$2 command=$3
    shift 3
    CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$TARGET_DIR} "$cargo" "$command" --manifest-path "$folder/Cargo.toml" "$@"
}

# engine_library NAME FILE PROFILE ACTION : builds a library of engines/, and puts it where tests find it, or to `install` where all do.
engine_library() {
    local built=$TARGET_DIR/$1/$3/$2
    (cd "engines/$1" && CARGO_TARGET_DIR=$TARGET_DIR/$1 cargo build --profile "$3" --locked)
    if [ "$4" = install ]; then
        install -m 644 "$built" /usr/local/lib/
        say "Installed: /usr/local/lib/$2"
    else
        install -D -m 644 "$built" "$TARGET_DIR/transports/$2"
        say "Made: $TARGET_DIR/transports/$2"
    fi
}

# in_lab CARGO COMMAND ARGUMENT… : the same in the workspace of the laboratory. Its programs go beside `tsuji`.
in_lab() {
    in_workspace lab "$@"
}

# cmake_build NAME SOURCE BUILD ARGUMENT… : configures a project with these arguments, and builds it. What configuring says is in
# NAME.cmake.log, and on the terminal where it fails.
cmake_build() {
    local log=$LOGS/$1.cmake.log source=$2 build=$3
    shift 3
    cmake -S "$source" -B "$build" "$@" >"$log" 2>&1 || {
        cat "$log" >&2
        return 1
    }
    cmake --build "$build" --parallel "$(nproc)"
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
        CARGO_TARGET_DIR=$CHECKED in_lab cargo clippy --all-targets --locked -- -D warnings
}

# own_messages_lints : what the example of own messages must pass without a test. Whatever a crate warns of, generated code is
# still.
own_messages_lints() {
    local folder=examples/own-messages
    cargo fmt --manifest-path $folder/Cargo.toml --check && licences $folder &&
        CARGO_TARGET_DIR=$CHECKED in_workspace $folder cargo clippy --all-targets --locked -- -D warnings -W missing_docs -W unreachable_pub \
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

# version : the version of the workspace.
version() {
    sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1
}

# rust_version_min: the oldest Rust that the workspace states to work with.
rust_version_min() {
    sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml
}

# apart TRIPLE PROGRAM FOLDER : puts a program for that processor there, and what a debugger wants beside it, as PROGRAM.debug.
apart() {
    local machine=${1%%-*} objcopy=objcopy name
    name=$(basename "$2")
    if [ "$(uname -m)" != "$machine" ]; then
        objcopy=$machine-linux-gnu-objcopy
        needs "$objcopy=binutils-${machine/_/-}-linux-gnu"
    fi
    "$objcopy" --only-keep-debug --compress-debug-sections "$2" "$3/$name.debug"
    "$objcopy" --strip-all --add-gnu-debuglink="$3/$name.debug" "$2" "$3/$name"
}

# alone : keeps another run of this script waiting, in this working copy, until this one has ended.
alone() {
    exec 8>"$LOGS/$SCRIPT.lock"
    flock 8
}

# at_end COMMANDS : has these run at the end of this script, Ctrl-C and being told to end among them.
at_end() {
    # shellcheck disable=SC2064  # as they are now
    trap "$1" EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

# The session of what `limited` runs, while it does.
LIMITED=

# limited SECONDS WHAT COMMAND… : runs a command in a session of its own, without input. What it has started there ends with it; and all
# of it when it takes longer, and at the end of a script that has `end_limited` run then.
limited() {
    local seconds=$1 what=$2 status=0 start=$SECONDS took
    # Not with Ctrl-C ignored, as shells start what is in the background.
    setsid env --default-signal=INT,QUIT timeout --foreground --signal KILL "$seconds" "${@:3}" </dev/null &
    LIMITED=$!
    wait "$LIMITED" 2>/dev/null || status=$?
    took=$((SECONDS - start))
    end_limited
    if [ "$status" -eq 137 ] && [ "$took" -ge "$seconds" ]; then
        say "error: $what: killed, as after $seconds s it had not ended" >&2
    elif [ "$status" -eq 137 ]; then
        say "error: $what: something else killed it after $took s, as the system does where memory is short" >&2
    elif [ "$status" -ne 0 ]; then
        say "error: $what: failed with $status" >&2
    fi
    return "$status"
}

# end_limited : ends what is left of that session, in whatever groups of processes.
end_limited() {
    local stat line fields is_left=$LIMITED round
    # What ends meanwhile may have started something before. What the system itself cannot end is not waited for longer.
    for round in {1..100}; do
        [ -n "$is_left" ] || break
        [ "$round" -eq 1 ] || sleep 0.05
        is_left=
        for stat in /proc/[0-9]*/stat; do
            line=
            { read -r -d '' line <"$stat" || true; } 2>/dev/null
            # Behind the name: state, parent, group, session.
            read -r -a fields <<<"${line##*) }"
            [ ${#fields[@]} -gt 3 ] && [ "${fields[0]}" != Z ] || continue
            # One that was just started has no session of its own yet.
            if [ "${fields[3]}" = "$LIMITED" ] || [ "${fields[1]} $stat" = "$BASHPID /proc/$LIMITED/stat" ]; then
                kill -KILL "${line%% *}" 2>/dev/null || true
                is_left=1
            fi
        done
    done
    LIMITED=
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
    # Only one of them runs at a time.
    if ! { flock 9 && "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; } \
        9>"$LOGS/apt.lock" >"$LOGS/apt.log" 2>&1; then
        tail -n 20 "$LOGS/apt.log" >&2
        say "error: apt-get could not install: ${missing[*]}" >&2
        return 1
    fi
}
