//! What is done with a topic, a service or an action of ROS, and the topics of DDS that it takes.

use crate::Deed;

/// What is done with a topic, a service or an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// To a topic.
    Publish,
    /// To a topic.
    Subscribe,
    /// A service, as its client.
    Call,
    /// A service, as its server.
    Serve,
    /// To an action, as its client.
    SendGoal,
    /// An action, as its server.
    Execute,
}

impl Verb {
    /// The topics of DDS that it takes, and what is done with each. `name` begins with a slash, and may be a pattern of names.
    pub fn topics(self, name: &str) -> Vec<(Deed, String)> {
        use Deed::{Publish, Subscribe};
        match self {
            Self::Publish => vec![(Publish, format!("rt{name}"))],
            Self::Subscribe => vec![(Subscribe, format!("rt{name}"))],
            Self::Call => service([Publish, Subscribe], name).into(),
            Self::Serve => service([Subscribe, Publish], name).into(),
            Self::SendGoal => action([Publish, Subscribe], name),
            Self::Execute => action([Subscribe, Publish], name),
        }
    }
}

/// What is done with requests and with replies.
fn service([requests, replies]: [Deed; 2], name: &str) -> [(Deed, String); 2] {
    [(requests, format!("rq{name}Request")), (replies, format!("rr{name}Reply"))]
}

/// What is done with requests, and with all that answers.
fn action(deeds: [Deed; 2], name: &str) -> Vec<(Deed, String)> {
    let services = ["send_goal", "cancel_goal", "get_result"];
    let parts = services.iter().flat_map(|it| service(deeds, &format!("{name}/_action/{it}")));
    let told = ["feedback", "status"].iter();
    parts.chain(told.map(|it| (deeds[1], format!("rt{name}/_action/{it}")))).collect()
}
