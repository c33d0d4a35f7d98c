//! Children that are secured: a keystore of SROS2 for each of the two domains of a run, made in its folder.

use std::path::Path;
use std::time::SystemTime;

use tsuji_security::{Lifetime, Maker};

use crate::crew::Stage;
use crate::route;
use crate::transport::{ENCLAVE, KEYSTORE, Transport};

/// Where secured children are started.
pub(crate) struct Secured {
    /// Those that are processes of tsuji.
    ours: Stage,
    /// Those that are Cyclone DDS alone, in another domain.
    alone: Stage,
}

impl Secured {
    /// Makes both keystores, unless this run has them.
    pub(crate) fn set_up(stage: &Stage) -> Result<Self, String> {
        let secured = |domain: u32| {
            let keystore = stage.folder().join(format!("keystore-{domain}"));
            make(&keystore, domain).map_err(|error| error.to_string())?;
            let program = stage.program.clone().with_variable(ENABLE, "true");
            let program = program.with_variable(STRATEGY, "Enforce");
            let program =
                program.with_variable(KEYSTORE, keystore).with_variable(OVERRIDE, ENCLAVE);
            Ok::<_, String>(stage.with_program(program))
        };
        let folder = stage.folder();
        Ok(Self {
            ours: secured(route::domain(folder))?,
            alone: secured(route::raw_domain(folder))?,
        })
    }

    /// Where the children of a transport that is secured are started.
    pub(crate) fn stage(&self, transport: Transport) -> &Stage {
        if transport.is_tsuji() { &self.ours } else { &self.alone }
    }
}

/// An enclave that may do everything, in a keystore whose governance encrypts everything.
fn make(keystore: &Path, domain: u32) -> Result<(), tsuji_security::Refused> {
    let now = SystemTime::now();
    Maker::make(keystore, domain, now, || {})?;
    let maker = Maker::open(keystore, now, || {})?;
    maker.add_enclave(ENCLAVE, None, domain, Lifetime::days(now, 10), now).map(drop)
}

/// What secures a process of ROS 2, beside its keystore.
const ENABLE: &str = "ROS_SECURITY_ENABLE";
const STRATEGY: &str = "ROS_SECURITY_STRATEGY";
const OVERRIDE: &str = "ROS_SECURITY_ENCLAVE_OVERRIDE";
