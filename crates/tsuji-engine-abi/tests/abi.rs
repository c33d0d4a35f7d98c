//! The declarations in Rust are those of the header.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fmt::Write as _;
use std::mem::offset_of;
use std::process::Command;

use tsuji_engine_abi::abi;

/// Names of structures and fields, in C and in Rust, with their size or place.
macro_rules! layouts {
    ($($c:ident = $rust:ident: $($c_field:ident = $field:ident)*;)*) => {
        vec![$(
            (stringify!($c), "", size_of::<abi::$rust>()),
            $((stringify!($c), stringify!($c_field), offset_of!(abi::$rust, $field)),)*
        )*]
    };
}

#[test]
fn structures_are_as_in_the_header() {
    let here = layouts! {
        tsuji_qos = Qos: reliability=reliability durability=durability history=history depth=depth
            keep_all_max=keep_all_max liveliness=liveliness deadline_ns=deadline_ns
            lifespan_ns=lifespan_ns lease_ns=lease_ns;
        tsuji_endpoint = Endpoint: size=size topic=topic type=type_name user_data=user_data
            user_data_size=user_data_size qos=qos;
        tsuji_setting = Setting: key=key value=value;
        tsuji_join = Join: size=size domain=domain no_multicast=no_multicast host_only=host_only
            user_data=user_data user_data_size=user_data_size interfaces=interfaces
            interfaces_count=interfaces_count hosts=hosts hosts_count=hosts_count
            settings=settings settings_count=settings_count log=log;
        tsuji_ear = Ear: arg=arg on_data=on_data on_match=on_match;
        tsuji_related = Related: name=name number=number;
        tsuji_taken = Taken: sample=sample data=data data_size=data_size writer=writer
            number=number source_ns=source_ns related=related;
        tsuji_found = Found: kind=kind name=name vendor=vendor topic=topic type=type_name
            user_data=user_data user_data_size=user_data_size host=host program=program pid=pid
            qos=qos memory=memory;
        tsuji_transport = Table: abi=abi size=size name=name version=version scopes=scopes
            peers=peers features=features sample_bytes_max=sample_bytes_max join=join leave=leave
            participant_name=participant_name open_writer=open_writer close_writer=close_writer
            writer_name=writer_name listen_writer=listen_writer write=write
            acknowledged=acknowledged writer_matches=writer_matches open_reader=open_reader
            close_reader=close_reader reader_name=reader_name listen_reader=listen_reader take=take
            sample_free=sample_free reader_matches=reader_matches open_watch=open_watch
            close_watch=close_watch found=found found_free=found_free;
    };
    let mut source =
        "#include <stdio.h>\n#include \"tsuji_transport.h\"\nint main (void) {\n".to_owned();
    for (structure, field, _) in &here {
        let asked = match *field {
            "" => format!("sizeof (struct {structure})"),
            field => format!("offsetof (struct {structure}, {field})"),
        };
        writeln!(source, "  printf (\"%zu\\n\", {asked});").unwrap();
    }
    source.push_str("}\n");
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (file, program) = (folder.join("layout.c"), folder.join("layout"));
    std::fs::write(&file, source).unwrap();
    tsuji_conformance::compile(&file, &program, &[]);
    let said = Command::new(&program).output().unwrap().stdout;
    let there: Vec<usize> =
        String::from_utf8(said).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(there.len(), here.len());
    for ((structure, field, here), there) in here.iter().zip(there) {
        assert_eq!(*here, there, "{structure} {field}");
    }
}
