# shellcheck shell=bash
# Sourced after lib.sh by the scripts that need ROS 2 nodes which are not made of tsuji. They are in peers/.

# Beside the workspace's own, so that neither build makes the other's files anew.
readonly PEERS_TARGET_DIR=$TARGET_DIR/peers

# Where the tests find the peer, once it is built. Set here and not below, because a `step` is a process of its own.
export TSUJI_PEER_ROS2_CLIENT=$PEERS_TARGET_DIR/release/ros2-client-peer
# Only what needs it builds it: 385 packages.
readonly HIROZ_PEER=$PEERS_TARGET_DIR/release/hiroz-peer
# scripts/web-clients puts it beside the others.
readonly ROSLIBRUST_PEER=$PEERS_TARGET_DIR/release/roslibrust-peer

# in_peer NAME COMMAND… : runs a command in the folder of a peer.
in_peer() {
    local folder=$ROOT/peers/$1
    shift
    (cd "$folder" && CARGO_TARGET_DIR="$PEERS_TARGET_DIR" "$@")
}

# build_peers : builds every peer.
build_peers() {
    say "Building the peer of ros2-client; the first time this takes about a minute on two cores."
    in_peer ros2-client cargo build --quiet --release --locked || return
    say "Built: $TSUJI_PEER_ROS2_CLIENT"
}

# build_demo_peer : builds the one beside the demonstration in half of a release's time, and names it to the demo.
build_demo_peer() {
    in_peer ros2-client cargo build --quiet --profile demo --locked || return
    export TSUJI_PEER_ROS2_CLIENT=$PEERS_TARGET_DIR/demo/ros2-client-peer
}

# build_fastdds_peer : builds the node of Fast DDS alone, and names it to the tests. Fast DDS 3 has other headers.
build_fastdds_peer() {
    local build=$TARGET_DIR/fastdds-peer
    if [ ! -e /usr/include/fastrtps/fastrtps_fwd.h ]; then
        say "The peer of Fast DDS alone is not built: the system has no Fast DDS 2."
        return
    fi
    cmake_build fastdds-peer "$ROOT/peers/fastdds" "$build" || return
    export TSUJI_PEER_FASTDDS=$build/fastdds-peer
}

# build_cyclonedds_peer : the same with Cyclone DDS as the system has it.
build_cyclonedds_peer() {
    local build=$TARGET_DIR/cyclonedds-peer
    needs /usr/include/dds/dds.h=cyclonedds-dev /usr/bin/idlc=cyclonedds-tools || return
    cmake_build cyclonedds-peer "$ROOT/peers/cyclonedds" "$build" || return
    export TSUJI_PEER_CYCLONEDDS=$build/cyclonedds-peer
}

# build_hiroz : builds the peer on rmw_zenoh's wire, and names it to the tests.
build_hiroz() {
    say "Building the peer of hiroz; the first time this takes some minutes on two cores."
    in_peer hiroz cargo build --quiet --release --locked || return
    export TSUJI_PEER_HIROZ=$HIROZ_PEER
    say "Built: $TSUJI_PEER_HIROZ"
}

# build_roslibrust : builds the client of rosbridge.
build_roslibrust() {
    say "Building the peer of roslibrust; the first time this takes about a minute on two cores."
    in_peer roslibrust cargo build --quiet --release --locked || return
    say "Built: $ROSLIBRUST_PEER"
}

# test_peers : what `make test` is for the workspace, for the peers.
test_peers() {
    in_peer ros2-client cargo fmt --check &&
        in_peer ros2-client cargo clippy --release --all-targets --locked -- -D warnings &&
        in_peer ros2-client cargo test --release --locked &&
        in_peer roslibrust cargo clippy --release --all-targets --locked -- -D warnings
}
