//! What the transports of this build offer, for a decision on paper.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use tsuji::{Context, TransportReport};
use tsuji_core::{
    Capability, Health, Interop, Offer, Peer, Peers, Policy, RtpsEngine, Scopes, TransportId,
};

/// The offers of this build's transports under the settings of `policy`.
///
/// They are opened in a folder of their own, so that nobody else notices.
pub(crate) fn of_this_build(policy: &Policy) -> anyhow::Result<Vec<Offer>> {
    let folder = Folder::create()?;
    let builder = Context::builder().isolated().runtime_dir(&folder.0).policy(policy.clone());
    let context = builder.interop(Interop::NONE).build()?;
    let meets_plain = policy.interop().contains(Interop::RTPS);
    let mut offers: Vec<Offer> =
        context.transports().into_iter().map(|it| offer(it, meets_plain)).collect();
    if policy.engine() == RtpsEngine::FastDds {
        swap_engines(&mut offers);
    }
    // Nobody is met here, and it is asked for nothing more by default.
    let meets_zenoh = policy.interop().contains(Interop::ZENOH);
    for offer in offers.iter_mut().filter(|it| it.transport.as_str() == "zenoh" && meets_zenoh) {
        offer.peers.zenoh = true;
    }
    if policy.interop().contains(Interop::ROS1) {
        offers.push(nodes_of_ros1());
    }
    Ok(offers)
}

/// What its plug-in offers where it is there: it is not opened where nobody is met.
fn nodes_of_ros1() -> Offer {
    let scopes = Scopes { intra: false, local: true, remote: true };
    let able = Capability { scopes, sample_bytes_max: 1 << 30, ..Capability::ANYTHING };
    let peers = Peers { tsuji: false, ros1: true, ..Peers::TSUJI };
    Offer { peers, ..Offer::new(TransportId::new("ros1"), able) }
}

/// Nobody is met here, so what meets foreign nodes is what does so by default: where Fast DDS is to do it,
/// and is there, it does so in the place of the other.
fn swap_engines(offers: &mut [Offer]) {
    let at = |engine: RtpsEngine| {
        let name = engine.to_string();
        offers.iter().position(|it| it.transport.as_str() == name && it.health == Health::Good)
    };
    if let (Some(cyclone), Some(fast)) = (at(RtpsEngine::CycloneDds), at(RtpsEngine::FastDds)) {
        let peers = std::mem::replace(&mut offers[cyclone].peers, Peers::TSUJI);
        offers[fast].peers = peers;
    }
}

fn offer(report: TransportReport, meets_plain: bool) -> Offer {
    let transport = TransportId::new(&report.name);
    if let Some(trouble) = report.trouble.as_ref().filter(|_| report.scopes.is_empty()) {
        // It says nothing else of itself, and is rejected for that alone.
        let able = Offer::new(transport, Capability::ANYTHING);
        return Offer {
            health: Health::Failed(trouble.as_str().into()),
            peers: Peers::ALL,
            ..able
        };
    }
    let said = report.peers.iter().filter_map(|it| it.parse::<Peer>().ok());
    let said = said.filter(|it| meets_plain || *it == Peer::Tsuji);
    let peers = said.fold(Peers::default(), |peers, peer| peers.union(peer.into()));
    let reaches = |scope: &str| report.scopes.iter().any(|it| it == scope);
    let capability = Capability {
        scopes: Scopes {
            intra: reaches("intra"),
            local: reaches("local"),
            remote: reaches("remote"),
        },
        reliable: report.reliable,
        loan: report.loan,
        typed: report.typed,
        sample_bytes_max: report.sample_bytes_max,
        readers_max: report.readers_max,
        ..Capability::ANYTHING
    };
    let health = match report.trouble {
        Some(trouble) => Health::Failed(trouble.into()),
        None => Health::Good,
    };
    Offer { health, peers, ..Offer::new(transport, capability) }
}

/// Names that are tried for a folder.
const NAMES_MAX: u32 = 100;

/// A folder that is gone when this is.
struct Folder(PathBuf);

impl Folder {
    fn create() -> io::Result<Self> {
        let mut result = Err(io::ErrorKind::AlreadyExists.into());
        // A folder of that name is one that a killed process with this number left.
        for attempt in 0..NAMES_MAX {
            let name = format!("tsuji-offline-{}-{attempt}", std::process::id());
            let path = std::env::temp_dir().join(name);
            result = fs::DirBuilder::new().mode(0o700).create(&path).map(|()| Self(path));
            if !result.as_ref().is_err_and(|it| it.kind() == io::ErrorKind::AlreadyExists) {
                break;
            }
        }
        result
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // An empty folder that stays does no harm, and there is nobody left to tell.
        let _ = fs::remove_dir_all(&self.0);
    }
}
