//! How the engine is told to behave: its defaults lose large samples, so tsuji sets its own.

use std::fmt::Write as _;

/// Where the engine talks, and with whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CycloneConfig {
    /// The domain on the network, 0 to 232.
    pub domain: u32,
    /// The names of the interfaces to use; none leaves the choice to the engine.
    pub interfaces: Vec<String>,
    /// Multicast also on an interface that does not say that it can, as loopback.
    pub force_multicast: bool,
    /// Addresses of hosts to look for besides those that multicast finds.
    pub peers: Vec<String>,
    /// Nobody is looked for by multicast.
    pub no_multicast: bool,
    /// What is announced of the participant.
    pub user_data: Vec<u8>,
}

impl CycloneConfig {
    /// The configuration in the words of Cyclone DDS. `receive_buffer_bytes_max` is what the system
    /// allows a socket.
    ///
    /// Datagrams of nearly 64 KiB and a receive buffer that holds a whole burst of them: the three
    /// settings together keep a sample of megabytes from overrunning the buffer, which would cost a
    /// retransmission of a tenth of a second.
    pub(crate) fn to_xml(&self, receive_buffer_bytes_max: u64) -> String {
        let mut xml = String::from("<CycloneDDS><Domain Id=\"any\"><General>");
        if !self.interfaces.is_empty() {
            xml.push_str("<Interfaces>");
            for interface in &self.interfaces {
                let multicast = if self.force_multicast { "true" } else { "default" };
                let name = escaped(interface);
                let _ = write!(xml, r#"<NetworkInterface name="{name}" multicast="{multicast}"/>"#);
            }
            xml.push_str("</Interfaces>");
        }
        let multicast = if self.no_multicast { "false" } else { "default" };
        let _ = write!(
            xml,
            "<AllowMulticast>{multicast}</AllowMulticast>\
             <MaxMessageSize>65500B</MaxMessageSize><FragmentSize>65000B</FragmentSize></General>"
        );
        let _ = write!(
            xml,
            "<Discovery><ExternalDomainId>{}</ExternalDomainId>\
             <ParticipantIndex>auto</ParticipantIndex>\
             <MaxAutoParticipantIndex>119</MaxAutoParticipantIndex>",
            self.domain
        );
        if !self.peers.is_empty() {
            xml.push_str("<Peers>");
            for peer in &self.peers {
                let _ = write!(xml, r#"<Peer address="{}"/>"#, escaped(peer));
            }
            xml.push_str("</Peers>");
        }
        let receive_bytes = RECEIVE_BUFFER_BYTES.min(receive_buffer_bytes_max);
        let _ = write!(
            xml,
            "</Discovery><Internal><SocketReceiveBufferSize min=\"{receive_bytes}B\"/>\
             </Internal></Domain></CycloneDDS>"
        );
        xml
    }
}

/// What a burst of a sample of some megabytes needs.
pub(crate) const RECEIVE_BUFFER_BYTES: u64 = 4 << 20;

/// What the system allows a socket, as far as it says.
pub(crate) fn receive_buffer_bytes_max() -> u64 {
    let said = std::fs::read_to_string("/proc/sys/net/core/rmem_max");
    said.ok().and_then(|said| said.trim().parse().ok()).unwrap_or(RECEIVE_BUFFER_BYTES)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}
