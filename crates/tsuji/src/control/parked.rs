//! What is said of channels that are parked, for which no socket is held.

use tsuji_platform::socket::MESSAGE_BYTES_MAX;
use tsuji_transport::PeerId;

use super::protocol::{Control, ParkingWord};
use super::watching::WatchWord;
use super::{Keeper, READ_BATCH};
use crate::graph_cache::GraphCache;

impl Keeper {
    /// Takes the first message on a connection, if it is about a channel which is parked.
    pub(super) fn take_first(&self, graph_cache: &mut GraphCache, key: u64, word: ParkingWord) {
        match word {
            ParkingWord::Resume(token) => {
                let peer = PeerId(token);
                self.read_rest(graph_cache, peer);
                if graph_cache.channels.adopt(peer, key) {
                    return;
                }
                // What is left of its channel is lost; that of somebody else is none of its business.
                let is_its_own = graph_cache.channels.is_from(peer, key);
                let old = graph_cache.channels.key_of(peer).filter(|_| is_its_own);
                graph_cache.channels.send_by(key, &Control::Parking(ParkingWord::Anew));
                old.into_iter().for_each(|old| self.drop_channel(graph_cache, old));
            }
            ParkingWord::ConnectBack(token) => {
                let is_known = graph_cache.channels.connect_back(PeerId(token));
                if !is_known {
                    // A hello follows.
                    graph_cache.channels.look_again();
                }
            }
            ParkingWord::Gone(token) => {
                self.check_gone(graph_cache, PeerId::default(), PeerId(token));
            }
            ParkingWord::Bye(token) => {
                let peer = PeerId(token);
                let is_its_own = graph_cache.channels.is_from(peer, key);
                if let Some(its) = graph_cache.channels.key_of(peer).filter(|_| is_its_own) {
                    graph_cache.channels.note_leaving(its);
                    if graph_cache.channels.is_parked(peer) {
                        self.drop_channel(graph_cache, its);
                    }
                }
            }
            ParkingWord::Park | ParkingWord::Stay | ParkingWord::Resumed | ParkingWord::Anew => {}
        }
        graph_cache.channels.mark_as_alone(key);
        self.drop_channel(graph_cache, key);
    }

    /// Takes a word on the open channel to a process.
    pub(super) fn take_word(
        &self,
        graph_cache: &mut GraphCache,
        key: u64,
        peer: PeerId,
        word: ParkingWord,
    ) {
        match word {
            ParkingWord::Park => graph_cache.channels.answer_park(key),
            ParkingWord::Stay => graph_cache.channels.take_refusal(key),
            ParkingWord::Resumed => graph_cache.channels.take_resumed(key),
            ParkingWord::Anew => self.drop_channel(graph_cache, key),
            ParkingWord::Gone(token) => self.check_gone(graph_cache, peer, PeerId(token)),
            ParkingWord::Bye(token) => {
                if PeerId(token) == peer {
                    graph_cache.channels.note_leaving(key);
                }
            }
            // Only the first message on a connection.
            ParkingWord::Resume(_) | ParkingWord::ConnectBack(_) => {}
        }
    }

    /// Reads what a process has sent before it hung up to park its channel.
    fn read_rest(&self, graph_cache: &mut GraphCache, peer: PeerId) {
        let Some(old) = graph_cache.channels.open_to(peer) else { return };
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        for _ in 0..READ_BATCH {
            if !self.read_one(graph_cache, old, &mut buffer) {
                return;
            }
        }
    }

    /// Somebody says that `gone` does not answer.
    fn check_gone(&self, graph_cache: &mut GraphCache, from: PeerId, gone: PeerId) {
        if gone == self.session.id {
            graph_cache.watch_words.push((from, WatchWord::SocketGone));
        } else {
            graph_cache.channels.check_gone(gone);
        }
    }
}
