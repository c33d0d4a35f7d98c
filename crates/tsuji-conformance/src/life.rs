//! Signs of life for tests of transports, which show them to nobody.

use std::sync::Arc;

use tsuji_platform::life::Life;
use tsuji_platform::process;

/// A sign of life for a process of a test, among those of this program. Of one that is killed a file stays in the folder of
/// temporary files.
pub fn life() -> Arc<Life> {
    let path = std::env::temp_dir().join(format!("tsuji-lives-{}.lock", std::process::id()));
    let token = process::random_token().expect("random numbers");
    Arc::new(Life::begin(&path, 0o600, token).expect("a lock in the folder of temporary files"))
}
