#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use tsuji_engine::Arrived;
use tsuji_transport::Gid;

use super::*;

/// An engine whose readers get what its writers write, and that panics where it is told to.
struct Mirror;

const NAME: Guid = [7; 16];

impl Library for Mirror {
    const NAME: &'static CStr = c"mirror";
    const VERSION: &'static CStr = c"1";
    const SCOPES: Scopes = Scopes { intra: false, local: true, remote: true };
    const PEERS: Peers = Peers { zenoh: true, other: true, ..Peers::TSUJI };
    const SAMPLE_BYTES_MAX: u64 = 100;

    fn join(asked: &Asked) -> Result<Box<dyn Participant>> {
        match asked.settings.first() {
            None => Ok(Box::new(Parts(Arc::default()))),
            Some((key, _)) if key == "panic" => panic!("as asked"),
            Some(_) => {
                let long = format!("{asked:?} {}", "ä".repeat(abi::PROBLEM_BYTES));
                Err(Error::new(ErrorKind::Invalid, "join").about(long))
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Parts(Arc<Mutex<VecDeque<(Bytes, i64)>>>);

impl Participant for Parts {
    fn guid(&self) -> Guid {
        NAME
    }

    fn writer(&self, spec: &EndpointSpec<'_>) -> Result<Box<dyn EngineWriter>> {
        assert_eq!((spec.topic, spec.type_name, spec.user_data), ("/t", "T", &b"u"[..]));
        assert_eq!(*spec.qos, Qos::DEFAULT);
        Ok(Box::new(self.clone()))
    }

    fn reader(&self, spec: &EndpointSpec<'_>) -> Result<Box<dyn EngineReader>> {
        if spec.topic == "/clinging" {
            return Ok(Box::new(Clinging(self.clone())));
        }
        Ok(Box::new(self.clone()))
    }

    fn watch(&self, listener: &Arc<dyn Listener>) -> Result<Box<dyn Watch>> {
        listener.data_available();
        Ok(Box::new(self.clone()))
    }
}

impl EngineWriter for Parts {
    fn guid(&self) -> Guid {
        NAME
    }

    fn listen(&mut self, listener: Arc<dyn Listener>) -> Result<()> {
        listener.matched();
        Ok(())
    }

    fn write(&self, bytes: &Bytes, source_ns: i64) -> Result<()> {
        if bytes.len() == 5 {
            return Err(Error::new(ErrorKind::Busy, "send"));
        }
        lock(&self.0).push_back((bytes.clone(), source_ns));
        Ok(())
    }

    fn is_acknowledged(&self) -> bool {
        lock(&self.0).is_empty()
    }

    fn wait_for_acknowledgements(&self, _timeout: Duration) {
        panic!("as asked");
    }

    fn peep(&self) -> Arc<dyn Peep> {
        Arc::new(self.clone())
    }
}

impl Peep for Parts {
    fn matches(&self) -> Vec<Guid> {
        vec![[1; 16], [2; 16]]
    }
}

impl EngineReader for Parts {
    fn guid(&self) -> Guid {
        NAME
    }

    fn listen(&mut self, listener: Arc<dyn Listener>) -> Result<()> {
        listener.data_available();
        Ok(())
    }

    fn tap(&self) -> Arc<dyn Tap> {
        Arc::new(self.clone())
    }
}

/// A reader that panics when it is dropped, and keeps its listener all the same.
struct Clinging(Parts);

static KEPT: Mutex<Option<Arc<dyn Listener>>> = Mutex::new(None);

impl EngineReader for Clinging {
    fn guid(&self) -> Guid {
        NAME
    }

    fn listen(&mut self, listener: Arc<dyn Listener>) -> Result<()> {
        *lock(&KEPT) = Some(listener);
        Ok(())
    }

    fn tap(&self) -> Arc<dyn Tap> {
        self.0.tap()
    }
}

impl Drop for Clinging {
    fn drop(&mut self) {
        panic!("as asked");
    }
}

impl Tap for Parts {
    fn matches(&self) -> Vec<Guid> {
        Vec::new()
    }

    fn take(&self) -> Result<Option<Arrived>> {
        let next = lock(&self.0).pop_front();
        Ok(next.map(|(bytes, source_ns)| Arrived {
            writer: NAME,
            number: 1,
            source_ns,
            is_headed: false,
            related: None,
            bytes,
        }))
    }
}

impl Watch for Parts {
    fn take(&self) -> Vec<Found> {
        let qos = WireQos { deadline: Some(Duration::from_secs(1)), ..wire() };
        let participant = FoundParticipant {
            name: Gid(NAME),
            user_data: b"who".to_vec(),
            pid: Some(9),
            program: Some("p".to_owned()),
            ..FoundParticipant::default()
        };
        let endpoint = FoundEndpoint {
            name: Gid([8; 16]),
            participant: Gid(NAME),
            is_writer: true,
            topic: "/t".to_owned(),
            type_name: "T".to_owned(),
            user_data: Vec::new(),
            qos,
        };
        let gone = Found::Gone(Gid(NAME));
        vec![Found::Participant(participant), Found::Endpoint(endpoint), gone]
    }
}

fn wire() -> WireQos {
    WireQos::new(&Qos::DEFAULT).unwrap()
}

const TABLE: abi::Table = table::<Mirror>();

unsafe extern "C" fn log(_is_error: u32, text: *const c_char) {
    // SAFETY: it ends with a nul.
    assert!(!unsafe { CStr::from_ptr(text) }.is_empty());
}

/// What joining with one setting answers.
fn join(key: Option<&CStr>) -> (i32, *mut abi::Participant, String) {
    let setting = key.map(|key| abi::Setting { key: key.as_ptr(), value: c"v".as_ptr() });
    let hosts = [c"192.0.2.1".as_ptr()];
    let join = abi::Join {
        size: size_of::<abi::Join>(),
        domain: 7,
        no_multicast: 0,
        host_only: 1,
        user_data: ptr::null(),
        user_data_size: 0,
        interfaces: ptr::null(),
        interfaces_count: 0,
        hosts: hosts.as_ptr(),
        hosts_count: 1,
        settings: setting.as_ref().map_or(ptr::null(), ptr::from_ref),
        settings_count: setting.iter().len(),
        log,
    };
    let (mut place, mut problem) = (ptr::null_mut(), [0_u8; abi::PROBLEM_BYTES]);
    // SAFETY: all that it points to is there during the call.
    let answer =
        unsafe { (TABLE.join)(&raw const join, &raw mut place, problem.as_mut_ptr().cast()) };
    let problem = CStr::from_bytes_until_nul(&problem).unwrap().to_str().unwrap().to_owned();
    (answer, place, problem)
}

fn endpoint() -> abi::Endpoint {
    abi::Endpoint {
        size: size_of::<abi::Endpoint>(),
        topic: c"/t".as_ptr(),
        type_name: c"T".as_ptr(),
        user_data: b"u".as_ptr(),
        user_data_size: 1,
        qos: wire_qos(Some(&wire())),
    }
}

/// Counts what is called.
static CALLED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn called(_arg: *const c_void) {
    CALLED.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn released(owner: *mut c_void) {
    // SAFETY: it is the counter below.
    unsafe { &*owner.cast::<AtomicUsize>() }.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn the_table_says_what_it_is() {
    assert_eq!((TABLE.scopes, TABLE.sample_bytes_max), (3, 100));
    assert_eq!(TABLE.peers, abi::PEERS_ZENOH | abi::PEERS_OTHER);
}

#[test]
fn what_is_refused_and_what_panics_is_told() {
    let (answer, place, problem) = join(Some(c"x"));
    assert_eq!((answer, place), (abi::INVALID, ptr::null_mut()));
    let expect = "domain: 7, no_multicast: false, host_only: true, user_data: [], interfaces: [], \
                  hosts: [\"192.0.2.1\"], settings: [(\"x\", \"v\")]";
    assert!(problem.contains(expect) && problem.ends_with('ä'), "{problem}");
    let (answer, _, problem) = join(Some(c"panic"));
    assert_eq!((answer, problem.as_str()), (abi::UNEXPECTED, "the transport panicked: as asked"));
}

#[test]
fn nobody_hears_of_what_was_closed_even_if_it_panicked() {
    let (_, participant, _) = join(None);
    let news = AtomicUsize::new(0);
    unsafe extern "C" fn count(news: *const c_void) {
        // SAFETY: it is the counter above.
        unsafe { &*news.cast::<AtomicUsize>() }.fetch_add(1, Ordering::Relaxed);
    }
    let ear = Ear { arg: (&raw const news).cast(), on_data: count, on_match: count };
    let endpoint = abi::Endpoint { topic: c"/clinging".as_ptr(), ..endpoint() };
    let (mut reader, mut problem) = (ptr::null_mut(), [0; abi::PROBLEM_BYTES]);
    // SAFETY: as below.
    unsafe {
        let open = TABLE.open_reader;
        assert_eq!(
            open(participant, &raw const endpoint, &raw mut reader, problem.as_mut_ptr()),
            0
        );
        assert_eq!((TABLE.listen_reader)(reader, &raw const ear), 0);
        let kept = lock(&KEPT).take().unwrap();
        kept.data_available();
        kept.matched();
        (TABLE.close_reader)(reader);
        kept.data_available();
        kept.matched();
        assert_eq!(news.load(Ordering::Relaxed), 2);
        (TABLE.leave)(participant);
    }
}

#[test]
fn samples_go_through_and_are_released_once() {
    let (answer, participant, _) = join(None);
    assert_eq!(answer, 0);
    let (mut writer, mut reader) = (ptr::null_mut(), ptr::null_mut());
    let mut problem = [0; abi::PROBLEM_BYTES];
    let mut endpoint = endpoint();
    let ear = Ear { arg: ptr::null(), on_data: called, on_match: called };
    let count = AtomicUsize::new(0);
    let owner = (&raw const count).cast_mut().cast();
    // SAFETY: each object is used as the header has it, and what is pointed to is there.
    unsafe {
        let mut open_writer = |endpoint: &abi::Endpoint| {
            (TABLE.open_writer)(participant, endpoint, &raw mut writer, problem.as_mut_ptr())
        };
        endpoint.qos.durability = 9;
        assert_eq!(open_writer(&endpoint), abi::INVALID);
        endpoint.qos.durability = abi::VOLATILE;
        assert_eq!(open_writer(&endpoint), 0);
        let open = TABLE.open_reader;
        assert_eq!(
            open(participant, &raw const endpoint, &raw mut reader, problem.as_mut_ptr()),
            0
        );
        assert_eq!((TABLE.listen_writer)(writer, &raw const ear), 0);
        assert_eq!((TABLE.listen_reader)(reader, &raw const ear), 0);
        let names = foreign::names(|arg, each| {
            (TABLE.writer_matches)(writer, arg, each);
        });
        assert_eq!(names, [[1; 16], [2; 16]]);
        let write_as = |bytes: &[u8], related: *const abi::Related| {
            (TABLE.write)(writer, bytes.as_ptr(), bytes.len(), 5, related, owner, released)
        };
        let write = |bytes: &[u8]| write_as(bytes, ptr::null());
        assert_eq!(write(b"12345"), abi::BUSY);
        assert_eq!(count.load(Ordering::Relaxed), 1);
        assert_eq!(write(b"1234"), 0);
        assert_eq!((TABLE.acknowledged)(writer, 0), 0);
        assert_eq!((TABLE.acknowledged)(writer, 1), abi::UNEXPECTED);
        let mut taken = MaybeUninit::<abi::Taken>::uninit();
        assert_eq!((TABLE.take)(reader, taken.as_mut_ptr()), 1);
        assert_eq!((TABLE.take)(reader, MaybeUninit::uninit().as_mut_ptr()), 0);
        assert_eq!((TABLE.acknowledged)(writer, 1), 1);
        (TABLE.close_writer)(writer);
        (TABLE.close_reader)(reader);
        let taken = taken.assume_init();
        assert_eq!((taken.writer, taken.number, taken.source_ns), (NAME, 1, 5));
        assert_eq!(std::slice::from_raw_parts(taken.data, taken.data_size), b"1234");
        assert_eq!(count.load(Ordering::Relaxed), 1);
        (TABLE.sample_free)(taken.sample);
        assert_eq!(count.load(Ordering::Relaxed), 2);
        let mut watch = ptr::null_mut();
        let open = TABLE.open_watch;
        assert_eq!(open(participant, &raw const ear, &raw mut watch, problem.as_mut_ptr()), 0);
        assert_eq!(CALLED.load(Ordering::Relaxed), 3);
        for kind in [abi::FOUND_PARTICIPANT, abi::FOUND_WRITER, abi::FOUND_GONE] {
            let mut found = MaybeUninit::<abi::Found>::uninit();
            assert_eq!((TABLE.found)(watch, found.as_mut_ptr()), 1);
            let mut found = found.assume_init();
            assert_eq!(found.kind, kind);
            let pid_and_deadline = match kind {
                abi::FOUND_PARTICIPANT => (9, abi::INFINITE),
                abi::FOUND_WRITER => (0, 1_000_000_000),
                _ => (0, abi::INFINITE),
            };
            assert_eq!((found.pid, found.qos.deadline_ns), pid_and_deadline);
            assert_eq!(text(found.topic), if kind == abi::FOUND_WRITER { "/t" } else { "" });
            let who = if kind == abi::FOUND_PARTICIPANT { &b"who"[..] } else { b"" };
            assert_eq!(all(found.user_data, found.user_data_size), who);
            (TABLE.found_free)(&raw mut found);
        }
        (TABLE.close_watch)(watch);
        (TABLE.leave)(participant);
    }
}
