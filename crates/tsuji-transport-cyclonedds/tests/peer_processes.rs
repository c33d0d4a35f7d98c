//! Participants of one host that pass over each other, because their processes speak otherwise.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use tsuji_conformance::watched;
use tsuji_platform::poll::Poll;
use tsuji_transport::wire::{Found, Treatment, Wire};
use tsuji_transport::{Gid, PeerId, Transport};
use tsuji_transport_cyclonedds::{CycloneConfig, CycloneDds, EngineTransport, PeerMarks};

/// How long a peer process has to be met otherwise.
const PATIENCE: Duration = Duration::from_secs(5);

/// A participant. Those of this process alone are looked at: on a busy machine there may be others.
struct Process {
    peer: PeerId,
    transport: EngineTransport,
    /// Found, and not looked at.
    found: RefCell<VecDeque<Found>>,
}

impl Process {
    /// One that has not joined yet. `place` is what peer processes of a host share.
    fn new(domain: u32, number: u8, place: Option<&str>) -> Self {
        let peer = PeerId([number; 16]);
        let place = place.map(|it| format!("place={it}-{};", std::process::id()));
        let user_data = format!("process={peer};{}", place.clone().unwrap_or_default());
        let peer_processes = place.map(|claim| PeerMarks { claim, key: "process=".to_owned() });
        let user_data = user_data.into_bytes();
        let config =
            CycloneConfig { user_data, peer_processes, ..CycloneConfig::on_loopback(domain) };
        Self {
            peer,
            transport: CycloneDds::create(peer, &config).unwrap(),
            found: RefCell::default(),
        }
    }

    fn joined(domain: u32, number: u8, place: Option<&str>) -> Self {
        let it = Self::new(domain, number, place);
        it.transport.join().unwrap();
        it
    }

    fn treat(&self, other: &Self, treatment: Treatment) {
        self.transport.treat(other.peer, treatment);
    }

    /// Waits until `other` is found, and answers all who were found before it, by the user data that they say.
    fn find(&self, other: &Self) -> Vec<String> {
        let sought = format!("process={};", other.peer);
        let mut before = Vec::new();
        self.until(|found| match found {
            Found::Participant(it) if it.pid == Some(std::process::id()) => {
                let said = String::from_utf8(it.user_data).unwrap();
                let is_sought = said.starts_with(&sought);
                before.push(said);
                is_sought.then_some(())
            }
            _ => None,
        });
        before.pop();
        before
    }

    fn until<T>(&self, mut pick: impl FnMut(Found) -> Option<T>) -> T {
        let poll = Poll::new().unwrap();
        poll.add(self.transport.control_fd().unwrap(), 0).unwrap();
        loop {
            self.transport.control_messages();
            self.found.borrow_mut().extend(self.transport.found());
            while let Some(next) = self.found.borrow_mut().pop_front() {
                if let Some(picked) = pick(next) {
                    return picked;
                }
            }
            poll.wait(None, &mut Vec::new()).unwrap();
        }
    }

    fn name(&self) -> Gid {
        self.transport.join().unwrap()
    }
}

#[test]
fn peer_processes_pass_over_each_other_until_they_are_to_meet() {
    watched(|| {
        let (a, b) = (Process::new(41, 1, Some("here")), Process::new(41, 2, Some("here")));
        a.treat(&b, Treatment::PassOver);
        b.treat(&a, Treatment::PassOver);
        a.transport.join().unwrap();
        b.transport.join().unwrap();
        // What comes from one that joined later is heard later.
        let witness = Process::joined(41, 3, None);
        assert_eq!((a.find(&witness), b.find(&witness)), (Vec::new(), Vec::new()));
        // Who does not share the place sees both.
        let before = witness.find(&a);
        if before.is_empty() {
            witness.find(&b);
        }

        a.treat(&b, Treatment::Meet);
        b.treat(&a, Treatment::Meet);
        assert_eq!((a.find(&b), b.find(&a)), (Vec::new(), Vec::new()));

        // As where their processes cannot speak for a while.
        a.treat(&b, Treatment::Wait);
        b.treat(&a, Treatment::Wait);
        a.treat(&b, Treatment::PassOver);
        b.treat(&a, Treatment::PassOver);
        let gone = |of: &Process| {
            of.until(|found| match found {
                Found::Gone(name) => Some(name),
                _ => None,
            })
        };
        assert_eq!((gone(&a), gone(&b)), (b.name(), a.name()));
        let later = Process::joined(41, 4, None);
        assert_eq!((a.find(&later), b.find(&later)), (Vec::new(), Vec::new()));
    });
}

#[test]
fn a_peer_process_that_nobody_has_met_otherwise_is_met_after_a_while() {
    watched(|| {
        let a = Process::joined(42, 5, Some("there"));
        let began = Instant::now();
        let (b, elsewhere) =
            (Process::joined(42, 6, Some("there")), Process::joined(42, 7, Some("else")));
        assert_eq!(a.find(&elsewhere), [] as [String; 0]);
        assert_eq!(a.find(&b), [] as [String; 0]);
        assert!(PATIENCE <= began.elapsed());
        // The other way round it may take another announcement.
        b.find(&a);
    });
}

#[test]
fn what_is_said_of_a_process_holds_for_each_of_its_participants() {
    watched(|| {
        let (a, b) = (Process::joined(43, 8, Some("again")), Process::new(43, 9, Some("again")));
        a.treat(&b, Treatment::Meet);
        b.treat(&a, Treatment::Meet);
        b.transport.join().unwrap();
        a.find(&b);
        b.find(&a);
        // This one is waited for.
        let waited_for = Process::joined(43, 10, Some("again"));
        let before = b.name();
        b.transport.leave();
        let after = b.name();
        assert_ne!(before, after);
        let names = |found| match found {
            Found::Participant(it) => {
                (it.name == after || it.name == waited_for.name()).then_some(it.name)
            }
            _ => None,
        };
        assert_eq!(a.until(names), after);
    });
}

/// What the system has dropped at the sockets of a domain's announcements, for whatever reason.
fn dropped(domain: u32) -> u64 {
    let port = format!(":{:04X}", 7400 + 250 * domain);
    let sockets = std::fs::read_to_string("/proc/net/udp").unwrap();
    let mine = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mine = mine.filter(|it| it.get(1).is_some_and(|it| it.ends_with(&port)));
    mine.map(|it| it.last().unwrap().parse::<u64>().unwrap()).sum()
}

#[test]
fn the_system_drops_what_is_passed_over() {
    watched(|| {
        let domain = 44;
        let a = Process::new(domain, 1, Some("drop"));
        let b = Process::joined(domain, 2, Some("drop"));
        a.treat(&b, Treatment::PassOver);
        b.treat(&a, Treatment::PassOver);
        a.transport.join().unwrap();
        let before = dropped(domain);
        // Whoever is to meet somebody announces itself at once; this one it will never hear of.
        let nobody = PeerId([99; 16]);
        while dropped(domain) == before {
            b.transport.treat(nobody, Treatment::Meet);
            b.transport.treat(nobody, Treatment::Wait);
            thread::yield_now();
        }
        // Others are heard, and it is too as soon as it is to be met.
        let other = Process::joined(domain, 3, None);
        assert_eq!(a.find(&other), [] as [String; 0]);
        a.treat(&b, Treatment::Meet);
        b.treat(&a, Treatment::Meet);
        a.find(&b);
        b.find(&a);
    });
}
