//! Options of what is made under a node, as values.

use std::sync::Arc;
use std::time::Duration;

use tsuji_core::Qos;
use tsuji_msg::TypeDescription;

use crate::clock::Clock;
use crate::content_filter::Described;
use crate::events::{ClientEvent, Note, PublisherEvent, ServiceEvent, SubscriptionEvent};
use crate::publisher_core::MAX_BLOCKING_DEFAULT;
use crate::{CallbackGroup, ContentFilterOptions};

/// Options of a publisher, subscription, service or client: what all of them have, and what only its kind has.
///
/// Use it by the name of the kind: [`PublisherOptions`], [`SubscriptionOptions`], [`ServiceOptions`],
/// [`ClientOptions`].
#[must_use = "options take effect in what is made with them"]
pub struct EndpointOptions<K: sealed::Kind> {
    pub(crate) qos: Qos,
    /// `None` for the node's own.
    pub(crate) group: Option<CallbackGroup>,
    pub(crate) on_event: Option<OnEvent<K>>,
    pub(crate) of_kind: K,
}

/// What is called with each event.
pub(crate) type OnEvent<K> = Box<dyn FnMut(<K as sealed::Kind>::Event) + Send>;

pub(crate) mod sealed {
    /// Kind of an endpoint.
    pub trait Kind: Default {
        /// What its endpoints are told of.
        type Event;
    }
}

impl<K: sealed::Kind> EndpointOptions<K> {
    fn of_kind(of_kind: K) -> Self {
        Self { qos: Qos::DEFAULT, group: None, on_event: None, of_kind }
    }

    /// Sets the QoS that is offered and asked for. Default [`Qos::DEFAULT`].
    ///
    /// **Publishers.** Transient local with keep all keeps everything for those who join later, up to 100,000 samples
    /// and 256 MiB. Then a reliable publish answers Busy, unless a lifespan makes room; best effort lets go of the
    /// oldest and counts it, in [`PublisherCounters::history_displaced`](crate::PublisherCounters::history_displaced).
    /// A late joiner that keeps all has room for 1024 at once: until it has taken so much of what it is owed that the
    /// rest fits, a reliable publish waits as for any subscription that is full.
    ///
    /// **Services and clients.** Durability must be volatile. The history is announced only: all requests and replies
    /// are kept, up to 1024, and whoever finds no room waits, unless the [depth is kept](ServiceOptions::keep_depth).
    /// By best effort the oldest goes instead.
    pub fn qos(mut self, qos: Qos) -> Self {
        self.qos = qos;
        self
    }

    /// Sets the callback group of its callbacks. Default, and with `None`, the node's own, which is mutually exclusive.
    pub fn group<'g>(mut self, group: impl Into<Option<&'g CallbackGroup>>) -> Self {
        self.group = group.into().cloned();
        self
    }

    /// Sets a callback that is called with each event, while the node is spun.
    pub fn on_event(mut self, callback: impl FnMut(K::Event) + Send + 'static) -> Self {
        self.on_event = Some(Box::new(callback));
        self
    }
}

impl<K: sealed::Kind> std::fmt::Debug for EndpointOptions<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EndpointOptions").field("qos", &self.qos).finish_non_exhaustive()
    }
}

/// Options of a publisher. A [`Qos`] alone will do.
///
/// ```no_run
/// use std::time::Duration;
/// use tsuji::interfaces::sensor_msgs::msg::Image;
/// use tsuji::{Context, PublisherOptions, Qos};
///
/// let node = Context::new()?.node("camera")?;
/// let options = PublisherOptions::default()
///     .qos(Qos::SENSOR_DATA)
///     .expected_size(640 * 480)
///     .max_blocking(Duration::from_millis(10))
///     .on_event(|event| println!("{event:?}"));
/// let publisher = node.create_publisher::<Image>("image", options)?;
/// # Ok::<_, tsuji::Error>(())
/// ```
pub type PublisherOptions = EndpointOptions<OfPublisher>;

/// What only publishers have.
#[doc(hidden)]
pub struct OfPublisher {
    pub(crate) expected_bytes: Option<u64>,
    pub(crate) max_blocking: Duration,
    pub(crate) note: Option<Note<PublisherEvent>>,
}

impl Default for OfPublisher {
    fn default() -> Self {
        Self { expected_bytes: None, max_blocking: MAX_BLOCKING_DEFAULT, note: None }
    }
}

impl sealed::Kind for OfPublisher {
    type Event = PublisherEvent;
}

impl PublisherOptions {
    /// Sets about how many bytes a sample will have, by which routes are chosen until the first samples show it.
    pub fn expected_size(mut self, bytes: u64) -> Self {
        self.of_kind.expected_bytes = Some(bytes);
        self
    }

    /// Sets how long a reliable publish or loan waits for room before it answers Busy. Default 100 ms.
    pub fn max_blocking(mut self, at_most: Duration) -> Self {
        self.of_kind.max_blocking = at_most;
        self
    }

    /// Sets a callback that is called with each event by the thread that comes upon it, spun or not.
    ///
    /// It may ask anything of tsuji, and should not wait: that thread may be the one that keeps the control channels.
    pub fn note_events(mut self, note: impl Fn(&PublisherEvent) + Send + Sync + 'static) -> Self {
        self.of_kind.note = Some(Arc::new(note));
        self
    }
}

impl Default for PublisherOptions {
    fn default() -> Self {
        Self::of_kind(OfPublisher::default())
    }
}

impl From<Qos> for PublisherOptions {
    fn from(qos: Qos) -> Self {
        Self::default().qos(qos)
    }
}

/// Options of a subscription. A [`Qos`] alone will do.
///
/// ```no_run
/// use tsuji::interfaces::std_msgs::msg::String as Text;
/// use tsuji::{CallbackGroupKind, Context, Qos, SubscriptionEvent, SubscriptionOptions};
///
/// let node = Context::new()?.node("listener")?;
/// let group = node.create_callback_group(CallbackGroupKind::Reentrant);
/// let options = SubscriptionOptions::default()
///     .qos(Qos::DEFAULT.keep_last(100))
///     .group(&group)
///     .on_event(|event| {
///         if let SubscriptionEvent::MessageLost { total } = event {
///             println!("{total} lost so far");
///         }
///     });
/// let _subscription = node.create_subscription::<Text>("chatter", options, |received| {
///     println!("{}", received.view().data);
/// })?;
/// tsuji::spin(&node)?;
/// # Ok::<_, tsuji::Error>(())
/// ```
pub type SubscriptionOptions = EndpointOptions<OfSubscription>;

/// What only subscriptions have.
#[doc(hidden)]
#[derive(Default)]
pub struct OfSubscription {
    pub(crate) ignores_local: bool,
    pub(crate) content_filter: ContentFilterOptions,
    pub(crate) described: Described,
    pub(crate) note: Option<Note<SubscriptionEvent>>,
}

impl sealed::Kind for OfSubscription {
    type Event = SubscriptionEvent;
}

impl SubscriptionOptions {
    /// Sets whether the subscription gets nothing from publishers of its own context. Default false.
    pub fn ignore_local(mut self, ignores: bool) -> Self {
        self.of_kind.ignores_local = ignores;
        self
    }

    /// Sets a content filter: only messages that pass it come to the subscription, and count for its depth. What tsuji's
    /// publishers on other hosts send is looked at when it leaves the engine's queue, and counts for the depth of that.
    ///
    /// The expression is that of DDS ([`tsuji_msg::Expression`] describes it), each parameter a constant for `%0`, `%1`
    /// and so on. An empty expression lets all messages pass, which is the default. What is filtered out is counted in
    /// [`SubscriptionCounters::filtered`](crate::SubscriptionCounters::filtered).
    ///
    /// ```no_run
    /// use tsuji::interfaces::sensor_msgs::msg::Temperature;
    /// use tsuji::{Context, SubscriptionOptions};
    ///
    /// let node = Context::new()?.node("alarm")?;
    /// let options = SubscriptionOptions::default()
    ///     .content_filter("temperature > %0 AND header.frame_id LIKE %1", ["35.5", "'room_%'"]);
    /// let _hot = node.create_subscription::<Temperature>("heat", options, |received| {
    ///     println!("{}", received.view().temperature);
    /// })?;
    /// # Ok::<_, tsuji::Error>(())
    /// ```
    pub fn content_filter(
        mut self,
        filter_expression: impl Into<String>,
        expression_parameters: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.of_kind.content_filter =
            ContentFilterOptions::new(filter_expression, expression_parameters);
        self
    }

    /// Sets the definition of the type of a raw subscription, which a content filter needs.
    ///
    /// Without it the type must be one that ships with tsuji. A typed subscription has its own and ignores this.
    pub fn type_description(mut self, ty: Arc<TypeDescription>) -> Self {
        self.of_kind.described = Described::Given(ty);
        self
    }

    /// Sets what is known of the fields of a raw subscription's type, as [`SubscriptionOptions::type_description`] does, but
    /// without comparing the hash: who reads the fields from memory knows them and not the definition they came from.
    pub fn type_fields(mut self, ty: Arc<TypeDescription>) -> Self {
        self.of_kind.described = Described::Fields(ty);
        self
    }

    /// Sets a callback that is called with each event by the thread that comes upon it, spun or not.
    ///
    /// It may ask anything of tsuji, and should not wait: that thread may be the one that keeps the control channels.
    pub fn note_events(
        mut self,
        note: impl Fn(&SubscriptionEvent) + Send + Sync + 'static,
    ) -> Self {
        self.of_kind.note = Some(Arc::new(note));
        self
    }
}

impl Default for SubscriptionOptions {
    fn default() -> Self {
        Self::of_kind(OfSubscription::default())
    }
}

impl From<Qos> for SubscriptionOptions {
    fn from(qos: Qos) -> Self {
        Self::default().qos(qos)
    }
}

/// Options of a service's server, with its name. A name alone will do.
///
/// ```no_run
/// use tsuji::interfaces::std_srvs::srv::{SetBool, SetBoolResponse};
/// use tsuji::{Context, ServiceOptions};
///
/// let node = Context::new()?.node("motor")?;
/// let options = ServiceOptions::new("power").on_event(|event| println!("{event:?}"));
/// let _service = node.create_service::<SetBool>(options, |request| {
///     let message = if request.data { "on" } else { "off" };
///     SetBoolResponse { success: true, message: message.into() }
/// })?;
/// tsuji::spin(&node)?;
/// # Ok::<_, tsuji::Error>(())
/// ```
pub type ServiceOptions = EndpointOptions<OfService>;

/// What only servers have.
#[doc(hidden)]
#[derive(Default)]
pub struct OfService {
    pub(crate) name: String,
    pub(crate) keeps_depth: bool,
}

impl sealed::Kind for OfService {
    type Event = ServiceEvent;
}

impl ServiceOptions {
    /// Creates the options of a server of the service `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self::of_kind(OfService { name: name.into(), ..OfService::default() })
    }

    /// Keeps no more requests than the depth of the QoS, if its history has one. Default false: all are kept, up to
    /// 1024.
    ///
    /// As in every rmw the oldest goes, is counted, and its client gets no reply. What nobody looks for is not
    /// sorted out: up to 1024 of each client wait until then.
    pub fn keep_depth(mut self) -> Self {
        self.of_kind.keeps_depth = true;
        self
    }
}

/// Options of a service's client, with its name. A name alone will do.
///
/// ```no_run
/// use tsuji::interfaces::std_srvs::srv::SetBool;
/// use tsuji::{ClientOptions, Context, Qos};
///
/// let node = Context::new()?.node("caller")?;
/// let options =
///     ClientOptions::new("motor").qos(Qos::SERVICES).on_event(|event| println!("{event:?}"));
/// let client = node.create_client::<SetBool>(options)?;
/// # Ok::<_, tsuji::Error>(())
/// ```
pub type ClientOptions = EndpointOptions<OfClient>;

/// What only clients have.
#[doc(hidden)]
#[derive(Default)]
pub struct OfClient {
    pub(crate) name: String,
    pub(crate) keeps_depth: bool,
    pub(crate) texts: Texts,
}

impl sealed::Kind for OfClient {
    type Event = ClientEvent;
}

impl ClientOptions {
    /// Creates the options of a client of the service `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self::of_kind(OfClient { name: name.into(), ..OfClient::default() })
    }

    /// Keeps no more replies for [`RawClient::take_bytes`](crate::RawClient::take_bytes) than the depth of the QoS, if
    /// its history has one.
    ///
    /// As in every rmw the oldest goes, and is counted. Default false: all are kept, up to 1024.
    pub fn keep_depth(mut self) -> Self {
        self.of_kind.keeps_depth = true;
        self
    }

    /// Reads a text in a reply that is not UTF-8, or not UTF-16 if it is a wide one, with U+FFFD for what is not.
    ///
    /// For what shows replies of others. Default false: such a reply is [`ErrorKind::Invalid`](crate::ErrorKind::Invalid).
    /// Without effect on raw clients, which read nothing.
    pub fn replace_invalid_text(mut self) -> Self {
        self.of_kind.texts = Texts::Replaced;
        self
    }
}

/// A name is options in itself.
macro_rules! by_name {
    ($($options:ty),*) => {$(
        impl From<&str> for $options {
            fn from(name: &str) -> Self {
                Self::new(name)
            }
        }

        impl From<&String> for $options {
            fn from(name: &String) -> Self {
                Self::new(name)
            }
        }

        impl From<String> for $options {
            fn from(name: String) -> Self {
                Self::new(name)
            }
        }
    )*};
}

by_name!(ServiceOptions, ClientOptions);

/// Options of a timer. A period alone will do: then it is of steady time, which nobody sets.
///
/// ```no_run
/// use std::time::Duration;
/// use tsuji::{Context, TimerOptions};
///
/// let node = Context::new()?.node("drive")?;
/// // Rests where simulated time rests.
/// let options = TimerOptions::new(Duration::from_millis(20)).clock(&node.clock()?);
/// let _timer = node.create_timer(options, || println!("20 ms of ROS time"))?;
/// tsuji::spin(&node)?;
/// # Ok::<_, tsuji::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "options take effect in the timer that is made with them"]
pub struct TimerOptions {
    pub(crate) period: Duration,
    pub(crate) clock: Option<Clock>,
    pub(crate) group: Option<CallbackGroup>,
}

impl TimerOptions {
    /// Creates the options of a timer that calls back every `period`, at least 1 ns, of steady time.
    pub fn new(period: Duration) -> Self {
        Self { period, clock: None, group: None }
    }

    /// Sets the clock that the period is of. Default steady time.
    ///
    /// ROS time and steady time are allowed. The system's clock is set now and then; ROS time is the system's where it
    /// is not simulated, and a timer by it counts by steady time then.
    pub fn clock(mut self, clock: &Clock) -> Self {
        self.clock = Some(clock.clone());
        self
    }

    /// Sets the callback group. Default, and with `None`, the node's own, which is mutually exclusive.
    pub fn group<'g>(mut self, group: impl Into<Option<&'g CallbackGroup>>) -> Self {
        self.group = group.into().cloned();
        self
    }
}

impl From<Duration> for TimerOptions {
    fn from(period: Duration) -> Self {
        Self::new(period)
    }
}

/// How texts of a reply are read that are not UTF-8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Texts {
    /// They make it invalid.
    #[default]
    Checked,
    /// With U+FFFD.
    Replaced,
}
