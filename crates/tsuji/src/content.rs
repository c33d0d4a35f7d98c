//! What a request or a response is handed over as.

use std::any::Any;
use std::sync::Arc;

use tsuji_msg::Message;

use crate::publisher_core::Outgoing;

/// A request or a response to be sent: `&M`, `M` or `Arc<M>`.
///
/// `M` and `Arc<M>` reach the same process by reference, `&M` is copied for it. For other processes
/// each is serialised once, straight into the memory that carries it.
///
/// It is made by `into()`, which [`Client::call`](crate::Client::call), [`Client::send`](crate::Client::send) and
/// [`Request::respond`](crate::Request::respond) do themselves:
///
/// ```no_run
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tsuji::Context;
/// use tsuji::interfaces::std_srvs::srv::{SetBool, SetBoolRequest};
///
/// let client = Context::new()?.node("caller")?.create_client::<SetBool>("motor")?;
/// let on = Arc::new(SetBoolRequest { data: true });
/// let patience = Duration::from_secs(1);
/// client.call(&*on, patience)?;
/// client.call(Arc::clone(&on), patience)?;
/// client.call(SetBoolRequest { data: false }, patience)?;
/// # Ok::<_, tsuji::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Content<'a, M> {
    /// A message that is lent for the call.
    Borrowed(&'a M),
    /// A message that several hold.
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
