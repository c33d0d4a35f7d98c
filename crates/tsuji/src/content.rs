//! What a request or a response is handed over as.

use std::any::Any;
use std::sync::Arc;

use tsuji_msg::Message;

use crate::publication::Outgoing;

/// A request or a response on its way out: `&M`, `M` or `Arc<M>`.
///
/// `M` and `Arc<M>` reach the same process by reference, `&M` is copied for it. For other processes
/// each is serialised once, straight into the memory that carries it.
#[derive(Clone, Debug)]
pub enum Content<'a, M> {
    /// Looked at.
    Borrowed(&'a M),
    /// Shared.
    Shared(Arc<M>),
}

impl<'a, M: Message> From<&'a M> for Content<'a, M> {
    fn from(message: &'a M) -> Self {
        Self::Borrowed(message)
    }
}

impl<M: Message> From<M> for Content<'_, M> {
    fn from(message: M) -> Self {
        Self::Shared(Arc::new(message))
    }
}

impl<M: Message> From<Arc<M>> for Content<'_, M> {
    fn from(message: Arc<M>) -> Self {
        Self::Shared(message)
    }
}

impl<'a, M: Message> From<Content<'a, M>> for Outgoing<'a> {
    fn from(content: Content<'a, M>) -> Self {
        match content {
            Content::Borrowed(message) => Outgoing::Borrowed(message),
            Content::Shared(message) => {
                let shared: Arc<dyn Any + Send + Sync> = message;
                Outgoing::Shared(shared)
            }
        }
    }
}
