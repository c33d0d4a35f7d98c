//! What the enclaves of users may do, by the keystore that secures the bridge.

use std::collections::HashMap;
use std::sync::Arc;

use tsuji::{Context, EnclavePermissions, Verb};
use tsuji_rosbridge::access::{Access, Act, Enclaves};

use crate::{Error, Result, hub};

/// Each enclave that a user has.
#[derive(Debug)]
struct OfKeystore(HashMap<String, EnclavePermissions>);

/// Has the keystore of the context say what users with enclaves may do.
///
/// # Errors
///
/// An enclave that is not in it or not whole, or users with enclaves where nothing is secured.
pub(crate) fn bind(access: &mut Access, context: &Context) -> Result<()> {
    let mut all = HashMap::new();
    for enclave in access.enclaves() {
        if !all.contains_key(enclave) {
            let permissions = context.enclave_permissions(enclave);
            let permissions = permissions.map_err(|error| Error::invalid(error.to_string()))?;
            all.insert(enclave.to_owned(), permissions);
        }
    }
    if !all.is_empty() {
        *access = std::mem::take(access).with_enclaves(Arc::new(OfKeystore(all)));
    }
    Ok(())
}

impl Enclaves for OfKeystore {
    fn denial(&self, enclave: &str, act: Act, name: &str) -> Option<String> {
        let Some(permissions) = self.0.get(enclave) else {
            return Some(format!("nobody says what the enclave {enclave:?} may do"));
        };
        let (verb, name) = asked(act, name)?;
        permissions.may(verb, &name).err()
    }

    fn version(&self, enclave: &str) -> u64 {
        self.0.get(enclave).map_or(0, EnclavePermissions::version)
    }
}

/// What permissions are asked. `None` for what they have no word for: what the bridge tells itself, each what it may know, and routes.
fn asked(act: Act, name: &str) -> Option<(Verb, String)> {
    let of_node = |service: &str| {
        let node = name.split_once(':').map_or(name, |(node, _)| node);
        format!("{node}/{service}")
    };
    let verb = match act {
        Act::Publish => Verb::Publish,
        Act::Subscribe => Verb::Subscribe,
        Act::CallService if hub::tells(name) => return None,
        Act::CallService => Verb::Call,
        Act::ServeService => Verb::Serve,
        Act::SendGoal => Verb::SendGoal,
        Act::ServeAction => Verb::Execute,
        Act::ReadParameter => return Some((Verb::Call, of_node("get_parameters"))),
        Act::WriteParameter => return Some((Verb::Call, of_node("set_parameters"))),
        Act::SetRoute => return None,
    };
    Some((verb, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_takes_the_service_of_its_node() {
        let asked = |act, name| asked(act, name).map(|(verb, name)| format!("{verb:?} {name}"));
        for (act, name, expected) in [
            (Act::ReadParameter, "/arm:speed", Some("Call /arm/get_parameters")),
            (Act::WriteParameter, "/arm:speed", Some("Call /arm/set_parameters")),
            (Act::CallService, "/reset", Some("Call /reset")),
            (Act::CallService, "/rosapi/topics", None),
            (Act::CallService, "/rosapi/tsuji_routes", None),
            // Whoever answers by such a name is another, and a recording is not the user's own.
            (Act::CallService, "/rosapi/reboot", Some("Call /rosapi/reboot")),
            (
                Act::CallService,
                "/rosapi/tsuji_set_playback",
                Some("Call /rosapi/tsuji_set_playback"),
            ),
            (Act::ServeService, "/rosapi/topics", Some("Serve /rosapi/topics")),
            (Act::SendGoal, "/navigate", Some("SendGoal /navigate")),
            (Act::SetRoute, "/chatter", None),
        ] {
            assert_eq!(asked(act, name).as_deref(), expected, "{act} {name}");
        }
    }
}
