"""Reads and writes recordings with the packages that others use, for tests/cli/recordings.rs.

peer.py mcap FILE          prints each message as mcap and mcap-ros2-support read it
peer.py rosbags FILE       prints each message as rosbags reads it
peer.py write-mcap FILE    writes a file with mcap-ros2-support
peer.py write-rosbags DIR  writes a folder of rosbag2 with rosbags
"""

import sys
from pathlib import Path

COUNT = 20


def told(topic, data):
    if isinstance(data, str):
        print(topic, data[:40], len(data))
    else:
        print(topic, sum(bytes(data)), len(data))


def read_mcap(path):
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    with open(path, "rb") as file:
        reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
        assert reader.get_header().profile == "ros2", reader.get_header()
        summary = reader.get_summary()
        assert summary is not None and summary.chunk_indexes, summary
        for channel in summary.channels.values():
            assert channel.metadata["offered_qos_profiles"].startswith("- history: keep_last"), channel
            assert channel.metadata["topic_type_hash"].startswith("RIHS01_"), channel
        for schema, channel, message, ros in reader.iter_decoded_messages():
            assert schema.encoding == "ros2msg" and channel.message_encoding == "cdr"
            assert message.publish_time <= message.log_time
            told(channel.topic, ros.data)
        for metadata in reader.iter_metadata():
            print("metadata", metadata.name, metadata.metadata["/chatter received"])


def read_rosbags(path):
    from rosbags.highlevel import AnyReader
    from rosbags.typesys import Stores, get_typestore

    with AnyReader([Path(path)], default_typestore=get_typestore(Stores.ROS2_JAZZY)) as reader:
        for connection, _, raw in reader.messages():
            told(connection.topic, reader.deserialize(raw, connection.msgtype).data)


def write_mcap(path):
    from mcap_ros2.writer import Writer

    with open(path, "wb") as file, Writer(file) as writer:
        schema = writer.register_msgdef("std_msgs/msg/String", "string data")
        for number in range(COUNT):
            at = 1_700_000_000_000_000_000 + number * 1_000_000
            writer.write_message("/chatter", schema, {"data": f"written {number}"}, at, at, number)


def write_rosbags(path):
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    text = store.types["std_msgs/msg/String"]
    writer = Writer(Path(path), version=8 if "before" in path else 9, storage_plugin=StoragePlugin.MCAP)
    if "packed" in path:
        writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    if "each" in path:
        writer.set_compression(CompressionMode.MESSAGE, CompressionFormat.ZSTD)
    with writer:
        connection = writer.add_connection("/chatter", text.__msgtype__, typestore=store)
        for number in range(COUNT):
            raw = store.serialize_cdr(text(data=f"written {number}"), text.__msgtype__)
            writer.write(connection, 1_700_000_000_000_000_000 + number * 1_000_000, raw)


if __name__ == "__main__":
    word, name = sys.argv[1:]
    {
        "mcap": read_mcap,
        "rosbags": read_rosbags,
        "write-mcap": write_mcap,
        "write-rosbags": write_rosbags,
    }[word](name)
