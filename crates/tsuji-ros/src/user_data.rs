//! The user data of participants and endpoints: `key=value;` one after the other.
//!
//! | on | key | value | by |
//! |---|---|---|---|
//! | participant | `enclave` | `/` or the name of a security enclave | both implementations |
//! | endpoint | `typehash` | `RIHS01_` and 64 hexadecimal digits, not on Humble | both implementations |
//! | endpoint of a service | `clientid`, `serviceid` | see [`ServiceEnd`] | rmw_cyclonedds, before `typehash` |
//! | participant | `tsujiprocess`, `tsujiversion`, `tsujihost`, `tsujisecond`, `tsujiplace` | see [`TsujiParticipant`] | tsuji |
//! | endpoint | `tsujigid` | 32 hexadecimal digits | tsuji |
//! | endpoint of a service | `tsujiservicehash` | as `typehash`, of the service as a whole | tsuji, to its engine over Zenoh |
//!
//! Keys of tsuji stand after those of ROS 2, and keys that are not in the table are passed over. A
//! key is ASCII letters and digits **only**: the parser of ROS 2 gives up the whole user data at any
//! other character, the type hash with it. It writes no escapes, and its `;;` does not work as one
//! (more in [`pairs`]), so a value has no `;`. Fast DDS participants end with a NUL.
//!
//! From `parse_key_value` in rmw, `impl/cpp/key_value.hpp`; rmw_dds_common, `qos.cpp`;
//! rmw_cyclonedds, `rmw_node.cpp`; rmw_fastrtps, `participant.cpp` and `qos.cpp`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{self, Write as _};

use crate::gid::Guid;
use crate::hex::{Hex, sixteen_bytes};

/// The most bytes of user data that are read. Longer ones say nothing.
pub const USER_DATA_BYTES_MAX: usize = 4096;

/// The most bytes of a value that is written, or that is read into a text.
pub const VALUE_BYTES_MAX: usize = 255;

/// What a participant says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParticipantUserData {
    /// The security enclave, `/` by default. Foreign ROS 2 nodes do not list a participant without.
    pub enclave: Option<String>,
    /// What one of tsuji adds.
    pub tsuji: Option<TsujiParticipant>,
}

/// What a participant of tsuji says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TsujiParticipant {
    /// The process, by its token.
    pub process: [u8; 16],
    /// The version of the protocol between processes of tsuji.
    pub version: u32,
    /// The host, by its name. For people: that two are on one host is proved otherwise.
    pub host: String,
    /// The process has another participant, by which others of tsuji know it; `tsujisecond=1`.
    pub is_second: bool,
    /// The place where those of one host who share it meet without the wire, by a number; 16 hexadecimal digits. Said by those
    /// alone who can pass over each other on the wire.
    pub place: Option<u64>,
}

impl TsujiParticipant {
    /// What stands before the number of the process, in what is written.
    pub fn process_key() -> String {
        format!("{PROCESS}=")
    }

    /// What all who share a place have in what they write, and nobody else.
    pub fn place_mark(place: u64) -> String {
        format!("{PLACE}={place:016x};")
    }
}

impl ParticipantUserData {
    /// Reads what a participant announced. What is not user data of ROS 2 says nothing.
    ///
    /// An error is about a key that is known and has a value that it cannot have, or a missing key of
    /// tsuji. Such a participant is best taken for one that says nothing.
    pub fn parse(bytes: &[u8]) -> Result<Self, UserDataError> {
        let pairs = pairs(bytes);
        let tsuji = match pairs.get(PROCESS) {
            None => None,
            Some(process) => Some(TsujiParticipant {
                process: sixteen(PROCESS, process)?,
                version: number(VERSION, required(&pairs, VERSION, NUMBER)?)?,
                host: text(HOST, required(&pairs, HOST, TEXT)?)?,
                is_second: pairs.get(SECOND).is_some_and(|it| *it == b"1"),
                // A help, and no reason to take the process for a foreign one.
                place: pairs.get(PLACE).and_then(|place| sixteen_digits(place)),
            }),
        };
        let enclave = pairs.get(ENCLAVE).map(|value| text(ENCLAVE, value)).transpose()?;
        Ok(Self { enclave, tsuji })
    }

    /// Writes what a participant announces. A text is refused if it is empty, longer than
    /// [`VALUE_BYTES_MAX`], or has a `;` or NUL.
    pub fn write(&self) -> Result<Vec<u8>, UserDataError> {
        let mut out = Pairs::default();
        if let Some(enclave) = &self.enclave {
            out.text(ENCLAVE, enclave)?;
        }
        if let Some(tsuji) = &self.tsuji {
            out.put(PROCESS, Hex(&tsuji.process));
            out.put(VERSION, tsuji.version);
            out.text(HOST, &tsuji.host)?;
            if tsuji.is_second {
                out.put(SECOND, 1);
            }
            if let Some(place) = tsuji.place {
                out.0 += &TsujiParticipant::place_mark(place);
            }
        }
        Ok(out.0.into_bytes())
    }
}

/// What a writer or reader says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointUserData {
    /// Which client or server it is a part of, on services of `rmw_cyclonedds_cpp`.
    pub service_end: Option<ServiceEnd>,
    /// The hash of its type, as ROS 2 writes it; for the topics of a service that of the request or
    /// the response. Announced where [`Distro::has_type_hash`](crate::gid::Distro::has_type_hash).
    pub type_hash: Option<String>,
    /// The hash of the service as a whole, by which rmw_zenoh knows it.
    pub service_hash: Option<String>,
    /// The GID that it has in tsuji.
    pub tsuji_gid: Option<[u8; 16]>,
}

impl EndpointUserData {
    /// Reads what an endpoint announced. What is not user data of ROS 2 says nothing.
    ///
    /// An error is about a key that is known and has a value that it cannot have. Such an endpoint
    /// is best taken for one that says nothing.
    pub fn parse(bytes: &[u8]) -> Result<Self, UserDataError> {
        let pairs = pairs(bytes);
        let service_end = match (pairs.get(CLIENT), pairs.get(SERVER)) {
            (Some(client), _) => Some(ServiceEnd::Client(text(CLIENT, client)?)),
            (None, Some(server)) => Some(ServiceEnd::Server(text(SERVER, server)?)),
            (None, None) => None,
        };
        let hash = |key| pairs.get(key).map(|value| type_hash(key, value)).transpose();
        let (type_hash, service_hash) = (hash(TYPE_HASH)?, hash(SERVICE_HASH)?);
        let tsuji_gid = pairs.get(GID).map(|value| sixteen(GID, value)).transpose()?;
        Ok(Self { service_end, type_hash, service_hash, tsuji_gid })
    }

    /// Writes what an endpoint announces. Refused is a hash that is none, and the id of a service end
    /// that is empty, longer than [`VALUE_BYTES_MAX`], or has a `;` or NUL.
    pub fn write(&self) -> Result<Vec<u8>, UserDataError> {
        let mut out = Pairs::default();
        match &self.service_end {
            Some(ServiceEnd::Client(id)) => out.text(CLIENT, id)?,
            Some(ServiceEnd::Server(id)) => out.text(SERVER, id)?,
            None => {}
        }
        if let Some(hash) = &self.type_hash {
            out.put(TYPE_HASH, type_hash(TYPE_HASH, hash.as_bytes())?);
        }
        if let Some(hash) = &self.service_hash {
            out.put(SERVICE_HASH, type_hash(SERVICE_HASH, hash.as_bytes())?);
        }
        if let Some(gid) = &self.tsuji_gid {
            out.put(GID, Hex(gid));
        }
        Ok(out.0.into_bytes())
    }
}

/// A client or server of `rmw_cyclonedds_cpp`: its writer and its reader say the same id.
///
/// A server replies when it has matched the reader whose id is that of the request's writer, a client
/// takes a server for available when it has matched both ends of one id. Where no id is said, both
/// take any match (`check_for_response_reader` and `check_for_service_reader_writer` in
/// rmw_cyclonedds, `rmw_node.cpp`). Ids are compared as text and have no other meaning.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServiceEnd {
    /// `clientid`.
    Client(String),
    /// `serviceid`.
    Server(String),
}

impl ServiceEnd {
    /// The id of the `counter`th client or server of a participant, in the form that rmw_cyclonedds
    /// gives it: the prefix of its GUID and the counter, byte by byte.
    pub fn id(participant: Guid, counter: u32) -> String {
        let Guid(bytes) = Guid::new(participant.prefix(), counter.to_be_bytes());
        let mut id = format!("{:2x}", bytes[0]);
        for byte in &bytes[1..] {
            // Writing to a String does not fail.
            let _ = write!(id, ".{byte:x}");
        }
        id
    }
}

/// The keys and values of user data, as `parse_key_value` of ROS 2 reads them; nothing at all if it
/// would give up, or if there are more than [`USER_DATA_BYTES_MAX`] bytes.
///
/// A value ends at the first `;` or at the end, and is not empty. Of several `;` in a row all but one
/// belong to the value, so a `;` can only be its last character. Between a `;` and the next key one
/// character that is neither a letter, a digit, `=` nor `;` is passed over; a NUL there is the end.
/// Of two equal keys the last counts.
pub fn pairs(bytes: &[u8]) -> BTreeMap<&str, &[u8]> {
    if bytes.len() > USER_DATA_BYTES_MAX {
        return BTreeMap::new();
    }
    parse_pairs(bytes).unwrap_or_default()
}

fn parse_pairs(bytes: &[u8]) -> Option<BTreeMap<&str, &[u8]>> {
    let mut pairs = BTreeMap::new();
    let mut rest = bytes;
    loop {
        let key_bytes = count(rest, u8::is_ascii_alphanumeric);
        let (key, after) = rest.split_at(key_bytes);
        let after = after.strip_prefix(b"=").filter(|_| key_bytes > 0)?;
        let before_semicolons = count(after, |byte| *byte != b';');
        let semicolons = count(&after[before_semicolons..], |byte| *byte == b';');
        let (value, next) = after.split_at(before_semicolons + semicolons);
        let value = value.strip_suffix(b";").unwrap_or(value);
        if value.is_empty() {
            return None;
        }
        pairs.insert(str::from_utf8(key).ok()?, value);
        rest = match next {
            [] | [0, ..] => return Some(pairs),
            [byte, after @ ..] if !byte.is_ascii_alphanumeric() && *byte != b'=' => after,
            _ => next,
        };
        if matches!(rest, [] | [0, ..]) {
            return Some(pairs);
        }
    }
}

/// How many bytes at the start are of a kind.
fn count(bytes: &[u8], is_of_kind: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| is_of_kind(byte)).count()
}

/// A value that its key cannot have.
#[derive(Clone, PartialEq, Eq)]
pub struct UserDataError {
    /// The key.
    pub key: &'static str,
    /// The value, at most 64 characters of it; none if it is missing.
    pub value: Option<String>,
    /// What the key can have.
    pub allowed: &'static str,
}

impl UserDataError {
    fn new(key: &'static str, value: &[u8], allowed: &'static str) -> Self {
        let value = String::from_utf8_lossy(value).chars().take(64).collect();
        Self { key, value: Some(value), allowed }
    }
}

impl fmt::Display for UserDataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, allowed } = self;
        match value {
            Some(value) => write!(f, "user data: {key}={value:?}; allowed: {allowed}"),
            None => write!(f, "user data: {key} is missing; allowed: {allowed}"),
        }
    }
}

impl Error for UserDataError {}

const ENCLAVE: &str = "enclave";
const TYPE_HASH: &str = "typehash";
const CLIENT: &str = "clientid";
const SERVER: &str = "serviceid";
const PROCESS: &str = "tsujiprocess";
const VERSION: &str = "tsujiversion";
const HOST: &str = "tsujihost";
const SECOND: &str = "tsujisecond";
const PLACE: &str = "tsujiplace";
const GID: &str = "tsujigid";
const SERVICE_HASH: &str = "tsujiservicehash";

const NUMBER: &str = "a number of at most 32 bits";
const TEXT: &str = "1 to 255 bytes of UTF-8 without ';' and NUL";

fn required<'a>(
    pairs: &BTreeMap<&str, &'a [u8]>,
    key: &'static str,
    allowed: &'static str,
) -> Result<&'a [u8], UserDataError> {
    pairs.get(key).copied().ok_or(UserDataError { key, value: None, allowed })
}

fn sixteen(key: &'static str, value: &[u8]) -> Result<[u8; 16], UserDataError> {
    sixteen_bytes(value).ok_or_else(|| UserDataError::new(key, value, "32 hexadecimal digits"))
}

fn sixteen_digits(value: &[u8]) -> Option<u64> {
    let digits = str::from_utf8(value).ok().filter(|it| it.len() == 16 && !it.starts_with('+'))?;
    u64::from_str_radix(digits, 16).ok()
}

fn number(key: &'static str, value: &[u8]) -> Result<u32, UserDataError> {
    let digits = str::from_utf8(value).ok().filter(|_| value.iter().all(u8::is_ascii_digit));
    let number = digits.and_then(|digits| digits.parse().ok());
    number.ok_or_else(|| UserDataError::new(key, value, NUMBER))
}

fn text(key: &'static str, value: &[u8]) -> Result<String, UserDataError> {
    let fits = (1..=VALUE_BYTES_MAX).contains(&value.len()) && !value.contains(&b';');
    let text = str::from_utf8(value).ok().filter(|text| fits && !text.contains('\0'));
    text.map(str::to_owned).ok_or_else(|| UserDataError::new(key, value, TEXT))
}

fn type_hash(key: &'static str, value: &[u8]) -> Result<String, UserDataError> {
    let digits = value.strip_prefix(b"RIHS01_").and_then(|digits| str::from_utf8(digits).ok());
    match digits {
        Some(digits) if digits.len() == 64 && digits.bytes().all(|it| it.is_ascii_hexdigit()) => {
            Ok(format!("RIHS01_{digits}"))
        }
        _ => Err(UserDataError::new(key, value, "RIHS01_ and 64 hexadecimal digits")),
    }
}

/// User data while they are written.
#[derive(Default)]
struct Pairs(String);

impl Pairs {
    fn text(&mut self, key: &'static str, value: &str) -> Result<(), UserDataError> {
        self.put(key, text(key, value.as_bytes())?);
        Ok(())
    }

    fn put(&mut self, key: &str, value: impl fmt::Display) {
        // Writing to a String does not fail.
        let _ = write!(self.0, "{key}={value};");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const HASH: &str = "RIHS01_000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    /// What ROS 2 reads, one byte after the other, with its memory of the byte before.
    fn as_ros_reads(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut read = BTreeMap::new();
        let (mut key, mut value) = (String::new(), Vec::new());
        let mut in_value = false;
        let mut before = 0;
        for &byte in bytes {
            if in_value {
                let value_ends = before == b';' && byte != b';';
                if byte == b';' && before != b';' {
                    before = byte;
                    continue;
                }
                if !value_ends {
                    value.push(byte);
                    before = byte;
                    continue;
                }
                if value.is_empty() {
                    return BTreeMap::new();
                }
                read.insert(std::mem::take(&mut key), std::mem::take(&mut value));
                in_value = false;
            }
            match byte {
                b'=' if key.is_empty() => return BTreeMap::new(),
                b'=' => in_value = true,
                _ if byte.is_ascii_alphanumeric() => key.push(char::from(byte)),
                0 if key.is_empty() && !read.is_empty() => break,
                _ if before == b';' && key.is_empty() => {}
                _ => return BTreeMap::new(),
            }
            before = byte;
        }
        if in_value && !value.is_empty() {
            read.insert(key, value);
        } else if in_value || !key.is_empty() {
            return BTreeMap::new();
        }
        read
    }

    fn as_tsuji_reads(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
        pairs(bytes).into_iter().map(|(key, value)| (key.to_owned(), value.to_vec())).collect()
    }

    #[track_caller]
    fn check(bytes: &[u8], expect: &[(&str, &str)]) {
        let expect: BTreeMap<_, _> = expect
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()))
            .collect();
        assert_eq!(as_ros_reads(bytes), expect);
        assert_eq!(as_tsuji_reads(bytes), expect);
    }

    #[test]
    fn pairs_as_ros_reads_them() {
        check(b"", &[]);
        check(b"enclave=/;", &[("enclave", "/")]);
        check(b"enclave=/;\0", &[("enclave", "/")]);
        check(b"enclave=/;\0a=b;", &[("enclave", "/")]);
        check(b"enclave=/", &[("enclave", "/")]);
        check(
            b"foo=bar;typehash=x;key=value;",
            &[("foo", "bar"), ("key", "value"), ("typehash", "x")],
        );
        check(b"a=b;a=c;", &[("a", "c")]);
        check(b"a=b=c;", &[("a", "b=c")]);
        check(b"a=b; c=d;", &[("a", "b"), ("c", "d")]);
        check(b"a=b; ", &[("a", "b")]);
        check(b"a=b;  c=d;", &[]);
        check(b"a=;", &[]);
        check(b"=b;", &[]);
        check(b"a=b;=c;", &[]);
        check(b"a", &[]);
        check(b"a=b;c", &[]);
        check(b" a=b;", &[]);
        check(b"\0a=b;", &[]);
    }

    #[test]
    fn an_underscore_in_a_key_spoils_all() {
        check(format!("typehash={HASH};tsuji_gid=00;").as_bytes(), &[]);
    }

    #[test]
    fn two_semicolons_are_no_escape() {
        check(b"a=b;;", &[("a", "b;")]);
        check(b"a=;;", &[("a", ";")]);
        check(b"a=b;;;", &[("a", "b;;")]);
        check(b"a=b;;c=d;", &[("a", "b;"), ("c", "d")]);
        check(b"a=b;;c;", &[]);
    }

    fn participant() -> ParticipantUserData {
        let tsuji = TsujiParticipant {
            process: [0xa5; 16],
            version: 3,
            host: "robot-1".to_owned(),
            is_second: true,
            place: Some(0x1f),
        };
        ParticipantUserData { enclave: Some("/".to_owned()), tsuji: Some(tsuji) }
    }

    #[test]
    fn what_participants_say() {
        let bytes = participant().write().unwrap();
        let expect = "enclave=/;tsujiprocess=a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5;\
                      tsujiversion=3;tsujihost=robot-1;tsujisecond=1;tsujiplace=000000000000001f;";
        assert_eq!(str::from_utf8(&bytes).unwrap(), expect);
        assert_eq!(ParticipantUserData::parse(&bytes), Ok(participant()));
        let plain = ParticipantUserData { tsuji: None, ..participant() };
        assert_eq!(plain.write().unwrap(), b"enclave=/;");
        assert_eq!(ParticipantUserData::parse(b"enclave=/;\0"), Ok(plain));
        let nothing = ParticipantUserData::default();
        assert_eq!(ParticipantUserData::parse(b"\x01\x02"), Ok(nothing.clone()));
        assert_eq!(ParticipantUserData::parse(b""), Ok(nothing.clone()));
        let long = format!("enclave={};", "a".repeat(USER_DATA_BYTES_MAX));
        assert_eq!(ParticipantUserData::parse(long.as_bytes()), Ok(nothing));
    }

    #[test]
    fn what_endpoints_say() {
        let prefix = *b"\x01\x10\xa1\xb2\xc3\xd4\xe5\xf6\x01\x02\x03\x04";
        let id = ServiceEnd::id(Guid::new(prefix, Guid::PARTICIPANT), 258);
        assert_eq!(id, " 1.10.a1.b2.c3.d4.e5.f6.1.2.3.4.0.0.1.2");
        let endpoint = EndpointUserData {
            service_end: Some(ServiceEnd::Client(id)),
            type_hash: Some(HASH.to_owned()),
            service_hash: Some(HASH.to_owned()),
            tsuji_gid: Some([0x0f; 16]),
        };
        let bytes = endpoint.write().unwrap();
        let expect = format!(
            "clientid= 1.10.a1.b2.c3.d4.e5.f6.1.2.3.4.0.0.1.2;typehash={HASH};\
             tsujiservicehash={HASH};tsujigid=0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f;"
        );
        assert_eq!(str::from_utf8(&bytes).unwrap(), expect);
        assert_eq!(EndpointUserData::parse(&bytes), Ok(endpoint));
        let server = EndpointUserData {
            service_end: Some(ServiceEnd::Server("7".to_owned())),
            ..EndpointUserData::default()
        };
        assert_eq!(server.write().unwrap(), b"serviceid=7;");
        assert_eq!(EndpointUserData::parse(b"serviceid=7;"), Ok(server));
        assert_eq!(EndpointUserData::default().write().unwrap(), b"");
    }

    #[test]
    fn values_that_cannot_be() {
        let endpoint = |bytes: &[u8], expect: &str| {
            assert_eq!(EndpointUserData::parse(bytes).unwrap_err().to_string(), expect);
        };
        endpoint(
            b"typehash=RIHS01_00;",
            "user data: typehash=\"RIHS01_00\"; allowed: RIHS01_ and 64 hexadecimal digits",
        );
        endpoint(b"tsujigid=0;", "user data: tsujigid=\"0\"; allowed: 32 hexadecimal digits");
        endpoint(
            b"clientid=\xff;",
            "user data: clientid=\"\u{fffd}\"; allowed: 1 to 255 bytes of UTF-8 without ';' and NUL",
        );
        let check = |bytes: &str, expect: &str| {
            let error = ParticipantUserData::parse(bytes.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), expect);
        };
        let process = "tsujiprocess=a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5;";
        check(process, "user data: tsujiversion is missing; allowed: a number of at most 32 bits");
        check(
            &format!("{process}tsujiversion=+1;"),
            "user data: tsujiversion=\"+1\"; allowed: a number of at most 32 bits",
        );
        let bent =
            format!("enclave=/;{process}tsujiversion=1;tsujihost=h;tsujiplace=+00000000000001f;");
        let read = ParticipantUserData::parse(bent.as_bytes()).unwrap();
        assert_eq!((read.enclave.as_deref(), read.tsuji.unwrap().place), (Some("/"), None));
        let unwritable = ParticipantUserData { enclave: Some("/a;b".to_owned()), tsuji: None };
        assert_eq!(
            unwritable.write().unwrap_err().to_string(),
            "user data: enclave=\"/a;b\"; allowed: 1 to 255 bytes of UTF-8 without ';' and NUL"
        );
    }

    proptest! {
        #[test]
        fn every_user_data_are_read_as_ros_reads_them(text in "[ab1=;_ \0]{0,24}") {
            prop_assert_eq!(as_tsuji_reads(text.as_bytes()), as_ros_reads(text.as_bytes()));
        }

        #[test]
        fn any_bytes_are_read_as_ros_reads_them(bytes: Vec<u8>) {
            prop_assert_eq!(as_tsuji_reads(&bytes), as_ros_reads(&bytes));
            let _ = (ParticipantUserData::parse(&bytes), EndpointUserData::parse(&bytes));
        }

        #[test]
        fn participants_read_back_and_ros_finds_its_key(
            enclave in prop::option::of("/[a-z_/]{0,30}"),
            tsuji in prop::option::of((
                any::<[u8; 16]>(), any::<u32>(), "[^;\0]{1,60}", any::<bool>(), any::<Option<u64>>(),
            )),
        ) {
            let tsuji = tsuji.map(|(process, version, host, is_second, place)| {
                TsujiParticipant { process, version, host, is_second, place }
            });
            let said = ParticipantUserData { enclave, tsuji };
            let bytes = said.write().unwrap();
            prop_assert_eq!(ParticipantUserData::parse(&bytes).unwrap(), said.clone());
            let found = as_ros_reads(&bytes).remove("enclave");
            prop_assert_eq!(found, said.enclave.map(String::into_bytes));
        }

        #[test]
        fn endpoints_read_back_and_ros_finds_its_keys(
            client in prop::option::of("[ 0-9a-f.]{1,50}"),
            hash in prop::option::of("RIHS01_[0-9a-f]{64}"),
            is_whole: bool,
            tsuji_gid: Option<[u8; 16]>,
        ) {
            let service_end = client.clone().map(ServiceEnd::Client);
            let service_hash = hash.clone().filter(|_| is_whole);
            let type_hash = hash.clone();
            let said = EndpointUserData { service_end, type_hash, service_hash, tsuji_gid };
            let bytes = said.write().unwrap();
            prop_assert_eq!(EndpointUserData::parse(&bytes).unwrap(), said);
            let mut found = as_ros_reads(&bytes);
            prop_assert_eq!(found.remove("typehash"), hash.map(String::into_bytes));
            prop_assert_eq!(found.remove("clientid"), client.map(String::into_bytes));
        }
    }
}
