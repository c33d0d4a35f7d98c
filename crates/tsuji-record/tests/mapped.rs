//! Recordings that are read where they lie in their files.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use tsuji_interfaces::Shipped;
use tsuji_msg::TypeSet;
use tsuji_record::{Compression, ErrorKind, RecordedMessage, Recording, RecordingWriter};

/// Bytes of a message: more than a page, and no multiple of one.
const BYTES: usize = 100_001;

/// A file that goes with its test.
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A recording of so many messages, each of which is full of its number and one nanosecond later.
fn made(compression: Compression, messages: u8) -> Made {
    let path = tsuji_platform::process::temporary_path("tsuji-record-mapped");
    let ty = TypeSet::new(Shipped).load("std_msgs/msg/String").unwrap();
    let writer = RecordingWriter::create(&path, compression).unwrap();
    for number in 1..=messages {
        writer.write("/bytes", &ty, number.into(), &[number; BYTES]).unwrap();
        writer.write("/few", &ty, number.into(), &[number; 10]).unwrap();
    }
    writer.finish().unwrap();
    Made(path)
}

fn all(recording: &mut Recording) -> Vec<RecordedMessage> {
    recording.messages(0).map(Result::unwrap).collect()
}

#[test]
fn messages_are_those_that_are_read() {
    for compression in [Compression::None, Compression::Zstd, Compression::Lz4] {
        let file = made(compression, 100);
        let mut mapped = Recording::open_mapped(&file.0).unwrap();
        let mut read = Recording::open(&file.0).unwrap();
        assert_eq!(mapped.summary(), read.summary());
        let messages = all(&mut mapped);
        assert_eq!(messages, all(&mut read));
        assert_eq!(mapped.summary().damages, []);
        // They stay when the file is gone.
        drop((mapped, file));
        let mut count = 0;
        for message in &messages {
            let number = u8::try_from(message.log_ns).unwrap();
            assert!(message.data().iter().all(|it| *it == number));
            count += 1;
        }
        assert_eq!(count, 200);
    }
}

#[test]
fn a_file_that_is_made_shorter_ends_with_an_error() {
    let file = made(Compression::None, 100);
    let half = fs::metadata(&file.0).unwrap().len() / 2;
    let mut recording = Recording::open_mapped(&file.0).unwrap();
    let mut held = Vec::new();
    let mut failed = None;
    for message in recording.messages(0) {
        match message {
            Ok(message) => held.push(message),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
        if held.len() == 10 {
            OpenOptions::new().write(true).open(&file.0).unwrap().set_len(half).unwrap();
        }
    }
    let failed = failed.unwrap();
    assert_eq!(failed.kind(), ErrorKind::Disk);
    let text = failed.to_string();
    assert!(text.contains(file.0.to_str().unwrap()) && text.contains("made shorter"), "{text}");
    assert!((10..200).contains(&held.len()), "{}", held.len());
    assert!(held[0].data().iter().all(|it| *it == 1));
}

#[test]
fn what_was_lost_after_the_last_was_loaded_is_told_in_the_end() {
    let file = made(Compression::None, 1);
    let mut recording = Recording::open_mapped(&file.0).unwrap();
    let mut messages = recording.messages(0);
    let message = messages.next().unwrap().unwrap();
    OpenOptions::new().write(true).open(&file.0).unwrap().set_len(0).unwrap();
    assert!(message.data().iter().all(|it| *it == 0));
    let rest: Vec<_> = messages.by_ref().map(|it| it.map(drop)).collect();
    assert!(
        matches!(&rest[..], [Ok(()), Err(error)] if error.kind() == ErrorKind::Disk),
        "{rest:?}"
    );
    assert!(messages.next().is_none());
}

#[test]
fn what_is_lost_of_a_file_of_a_folder_that_is_closed_is_told_too() {
    let folder = tsuji_platform::process::temporary_path("tsuji-record-mapped");
    fs::create_dir(&folder).unwrap();
    let names = ["one.mcap", "two.mcap"];
    let list = "rosbag2_bagfile_information:\n  version: 5\n  storage_identifier: mcap\n  relative_file_paths:\n    \
        - one.mcap\n    - two.mcap\n  topics_with_message_count: []\n";
    fs::write(folder.join("metadata.yaml"), list).unwrap();
    for name in names {
        for name in names {
            let file = made(Compression::None, 3);
            fs::rename(&file.0, folder.join(name)).unwrap();
        }
        let mut recording = Recording::open_mapped(&folder).unwrap();
        // Messages of both have the same times, so all are held before the end.
        let mut messages = recording.messages(0);
        let held: Vec<_> = messages.by_ref().take(12).map(Result::unwrap).collect();
        OpenOptions::new().write(true).open(folder.join(name)).unwrap().set_len(0).unwrap();
        let ended = messages.next().unwrap().unwrap_err();
        assert!(ended.to_string().contains(name), "{ended}");
        assert!(messages.next().is_none());
        drop(held);
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn checksums_of_what_is_mapped_are_not_compared() {
    let file = made(Compression::None, 3);
    let at = fs::read(&file.0).unwrap().windows(9).position(|it| it == [2; 9]).unwrap() as u64;
    OpenOptions::new().write(true).open(&file.0).unwrap().write_all_at(&[7], at + 5).unwrap();
    let mut read = Recording::open(&file.0).unwrap();
    read.check().unwrap();
    let [damage] = &read.summary().damages[..] else { panic!("{:?}", read.summary()) };
    assert!(damage.what.contains("its CRC is"), "{damage}");
    let mut mapped = Recording::open_mapped(&file.0).unwrap();
    assert_eq!(all(&mut mapped).len(), 6);
    assert_eq!(mapped.summary().damages, []);
}

#[test]
fn what_cannot_be_mapped_is_told() {
    let path = tsuji_platform::process::temporary_path("tsuji-record-mapped");
    let empty = Made(path.clone());
    fs::write(&path, b"").unwrap();
    let error = Recording::open_mapped(&empty.0).unwrap_err();
    assert!(error.to_string().contains("it is empty"), "{error}");
    fs::write(&path, b"no recording").unwrap();
    assert_eq!(Recording::open_mapped(&empty.0).unwrap_err().kind(), ErrorKind::Format);
}
