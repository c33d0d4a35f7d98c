/// Why a command ended without having done all of it.
#[derive(Debug)]
pub(crate) enum End {
    /// Standard input closed or SIGTERM came, as is the way of a command without a number of things to do.
    Told,
    /// The same, while something that was asked for was still to be done: what.
    Interrupted(String),
    /// Nothing happened for the time of `--timeout`: what was waited for.
    Silence(String),
    /// What the middleware refused, or what came out wrong.
    Failed(String),
}

impl End {
    pub(crate) fn failed(what: &str, error: impl std::fmt::Display) -> Self {
        Self::Failed(format!("{what}: {error}"))
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Told => 0,
            Self::Failed(_) => 1,
            // 2 is clap's, for a command line that makes no sense.
            Self::Silence(_) => 3,
            Self::Interrupted(_) => 4,
        }
    }

    pub(crate) fn words(&self) -> Option<String> {
        match self {
            Self::Told => None,
            Self::Interrupted(what) => Some(format!("interrupted: waited for {what}")),
            Self::Silence(what) => Some(format!("timeout: waited for {what}")),
            Self::Failed(what) => Some(format!("error: {what}")),
        }
    }
}
