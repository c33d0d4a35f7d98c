//! Contexts, and what a program asks of one.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tsuji::{Context, ContextBuilder, DiscoveryRange};

use crate::abi::{self, Abi, InC};
use crate::check::{check_identifier, context_of, not_null, text};
use crate::error::{Result, RmwError, guard};
use crate::ffi::rcutils::rcutils_allocator_t;
use crate::ffi::rmw::{
    NO_CONTEXT, NO_INIT_OPTIONS, RMW_DEFAULT_DOMAIN_ID, RMW_LOCALHOST_ONLY_DEFAULT,
    RMW_LOCALHOST_ONLY_DISABLED, RMW_LOCALHOST_ONLY_ENABLED, RMW_SECURITY_ENFORCEMENT_ENFORCE,
    rmw_context_t, rmw_init_options_t, rmw_ret_t,
};
use crate::ffi::rmw::{
    RMW_AUTOMATIC_DISCOVERY_RANGE_LOCALHOST, RMW_AUTOMATIC_DISCOVERY_RANGE_NOT_SET,
    RMW_AUTOMATIC_DISCOVERY_RANGE_OFF, RMW_AUTOMATIC_DISCOVERY_RANGE_SUBNET,
    RMW_AUTOMATIC_DISCOVERY_RANGE_SYSTEM_DEFAULT, rmw_peer_address_t,
};
use crate::identity::IDENTIFIER;
use crate::text::{Batch, check_allocator, free};
use crate::{log, memory};

/// What is behind an `rmw_context_t`.
pub(crate) struct ContextImpl {
    /// Ends with the last node made in it.
    pub(crate) context: Context,
    is_shut_down: AtomicBool,
    nodes: Arc<AtomicUsize>,
}

impl ContextImpl {
    /// Refuses a context that is shut down.
    pub(crate) fn check_open(&self) -> Result {
        match self.is_shut_down() {
            true => Err(RmwError::error("context is shut down")),
            false => Ok(()),
        }
    }

    /// Whether `rmw_shutdown` was called. Other contexts of the process go on, and so do what was
    /// made in this one until it is destroyed.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.is_shut_down.load(Ordering::Acquire)
    }

    /// Counts a node for as long as the answer lives.
    pub(crate) fn count_node(&self) -> NodeCount {
        self.nodes.fetch_add(1, Ordering::AcqRel);
        NodeCount { nodes: Arc::clone(&self.nodes) }
    }
}

/// One of the nodes that keep a context from being finalised.
pub(crate) struct NodeCount {
    nodes: Arc<AtomicUsize>,
}

impl Drop for NodeCount {
    fn drop(&mut self) {
        self.nodes.fetch_sub(1, Ordering::AcqRel);
    }
}

impl fmt::Debug for ContextImpl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ContextImpl").field(&self.context).finish()
    }
}

/// Makes options of zeros the default ones: what is not said comes from the environment.
///
/// # Safety
///
/// The options are null, or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_init_options_init(
    init_options: *mut InC<rmw_init_options_t>,
    allocator: rcutils_allocator_t,
) -> rmw_ret_t {
    guard(|| {
        // Before anything else: what is not known is not touched.
        let abi = abi::here()?;
        log::begin();
        not_null("init_options", init_options)?;
        check_allocator("allocator", &allocator)?;
        // SAFETY: the caller promises it.
        let options: rmw_init_options_t = unsafe { abi::get(abi, init_options) };
        if !options.implementation_identifier.is_null() {
            return Err(RmwError::invalid("init_options are not zero"));
        }
        let options = rmw_init_options_t {
            implementation_identifier: IDENTIFIER.as_ptr(),
            domain_id: RMW_DEFAULT_DOMAIN_ID,
            allocator,
            ..NO_INIT_OPTIONS
        };
        // SAFETY: the caller promises it.
        unsafe { abi::set(abi, init_options, &options) };
        Ok(())
    })
}

/// Copies options with all that they hold.
///
/// # Safety
///
/// The options are null, or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_init_options_copy(
    src: *const InC<rmw_init_options_t>,
    dst: *mut InC<rmw_init_options_t>,
) -> rmw_ret_t {
    guard(|| {
        let abi = abi::here()?;
        // SAFETY: the caller promises it.
        let src = unsafe { made(abi, "src", src) }?;
        not_null("dst", dst)?;
        // SAFETY: the caller promises it.
        let there: rmw_init_options_t = unsafe { abi::get(abi, dst) };
        if !there.implementation_identifier.is_null() {
            return Err(RmwError::invalid("dst is not zero"));
        }
        // SAFETY: the options are valid.
        unsafe { abi::set(abi, dst, &copied(abi, &src)?) };
        Ok(())
    })
}

/// Gives back what options hold, and makes them zero.
///
/// # Safety
///
/// The options are null, or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_init_options_fini(
    init_options: *mut InC<rmw_init_options_t>,
) -> rmw_ret_t {
    guard(|| {
        let abi = abi::here()?;
        // SAFETY: the caller promises it.
        let options = unsafe { made(abi, "init_options", init_options) }?;
        check_allocator("the allocator of init_options", &options.allocator)?;
        // SAFETY: the options are valid and ours.
        unsafe { give_back(&options) };
        // SAFETY: the caller promises it.
        unsafe { abi::set(abi, init_options, &NO_INIT_OPTIONS) };
        Ok(())
    })
}

/// Begins a context: from here on this process takes part in the domain.
///
/// # Safety
///
/// Options and context are null, or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_init(
    options: *const InC<rmw_init_options_t>,
    context: *mut InC<rmw_context_t>,
) -> rmw_ret_t {
    guard(|| {
        let abi = abi::here()?;
        // SAFETY: the caller promises it.
        let options = unsafe { made(abi, "options", options) }?;
        not_null("context", context)?;
        not_null("the enclave of options", options.enclave)?;
        // SAFETY: the caller promises it.
        let there: rmw_context_t = unsafe { abi::get(abi, context) };
        if !there.implementation_identifier.is_null() {
            return Err(RmwError::invalid("context is not zero"));
        }
        // Before the context has threads.
        memory::keep();
        // SAFETY: the options are valid.
        let mut asked = unsafe { asked(abi, &options) }?;
        if options.security_options.enforce_security == RMW_SECURITY_ENFORCEMENT_ENFORCE {
            // Else the environment says so, from which rcl has it too.
            asked = asked.enforce_security();
        }
        let made = asked.build()?;
        // SAFETY: the options are valid.
        let copy = unsafe { copied(abi, &options) }?;
        let actual_domain_id = usize::try_from(made.domain()).unwrap_or_default();
        let made = ContextImpl {
            context: made,
            is_shut_down: AtomicBool::new(false),
            nodes: Arc::default(),
        };
        let begun = rmw_context_t {
            instance_id: options.instance_id,
            implementation_identifier: IDENTIFIER.as_ptr(),
            options: copy,
            actual_domain_id,
            impl_: Box::into_raw(Box::new(made)).cast(),
        };
        // SAFETY: the caller promises it.
        unsafe { abi::set(abi, context, &begun) };
        log::context_begins();
        Ok(())
    })
}

/// Shuts a context down: no node can be made in it any more. It may be called again.
///
/// # Safety
///
/// The context is null, zero, or of `rmw_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_shutdown(context: *mut InC<rmw_context_t>) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let context = unsafe { context_of(context) }?;
        if !context.is_shut_down.swap(true, Ordering::AcqRel) {
            log::context_ends();
        }
        Ok(())
    })
}

/// Ends a context that is shut down, and makes it zero.
///
/// # Safety
///
/// The context is null, zero, or of `rmw_init`, and nobody else uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_context_fini(context: *mut InC<rmw_context_t>) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let made = unsafe { context_of(context) }?;
        if !made.is_shut_down() {
            return Err(RmwError::invalid("context is not shut down"));
        }
        match made.nodes.load(Ordering::Acquire) {
            0 => {}
            left => return Err(RmwError::error(format!("context still has {left} nodes"))),
        }
        let abi = abi::here()?;
        // SAFETY: the caller promises it.
        let ended: rmw_context_t = unsafe { abi::get(abi, context) };
        // SAFETY: `rmw_init` made it so, and nobody else uses it.
        drop(unsafe { Box::from_raw(ended.impl_.cast::<ContextImpl>()) });
        // SAFETY: the options are those that `rmw_init` copied.
        unsafe { give_back(&ended.options) };
        // SAFETY: the caller promises it.
        unsafe { abi::set(abi, context, &NO_CONTEXT) };
        Ok(())
    })
}

/// Options that were made, and by this rmw.
///
/// # Safety
///
/// They are null, or valid as long as the answer is used.
unsafe fn made(
    abi: &Abi,
    name: &str,
    options: *const InC<rmw_init_options_t>,
) -> Result<rmw_init_options_t> {
    not_null(name, options)?;
    // SAFETY: the caller promises it.
    let options: rmw_init_options_t = unsafe { abi::get(abi, options) };
    if options.implementation_identifier.is_null() {
        return Err(RmwError::invalid(format!("{name} are not initialised")));
    }
    // SAFETY: whoever made them set it.
    unsafe { check_identifier(name, options.implementation_identifier) }?;
    Ok(options)
}

/// The same options, in memory of their allocator.
///
/// # Safety
///
/// They are valid.
unsafe fn copied(abi: &Abi, src: &rmw_init_options_t) -> Result<rmw_init_options_t> {
    let mut batch = Batch::new(&src.allocator)?;
    let mut copy = |text: *const c_char| match text.is_null() {
        true => Ok(ptr::null_mut()),
        // SAFETY: a text of valid options ends with NUL.
        false => batch.text(unsafe { CStr::from_ptr(text) }.to_bytes()),
    };
    let mut dst = *src;
    dst.enclave = copy(src.enclave)?;
    dst.security_options.security_root_path = copy(src.security_options.security_root_path)?;
    if has_discovery(abi) {
        let (peers, count) = (src.discovery_options.static_peers, static_peers_count(src));
        dst.discovery_options.static_peers = batch.zeroed::<rmw_peer_address_t>(count)?;
        dst.discovery_options.static_peers_count = count;
        dst.discovery_options.allocator = src.allocator;
        // SAFETY: both have room for as many.
        unsafe { ptr::copy_nonoverlapping(peers, dst.discovery_options.static_peers, count) };
    }
    batch.keep();
    Ok(dst)
}

/// Gives back all that options hold.
///
/// # Safety
///
/// They are valid, and nobody else has what they hold.
unsafe fn give_back(options: &rmw_init_options_t) {
    let allocator = options.allocator;
    // SAFETY: whoever set these got them from the allocator of the options.
    unsafe {
        free(&allocator, options.enclave);
        free(&allocator, options.security_options.security_root_path);
    }
    // SAFETY: and these from that beside them. Where there are none they are null.
    unsafe {
        free(&options.discovery_options.allocator, options.discovery_options.static_peers);
    }
}

/// Whether options say whom to find: since Iron.
fn has_discovery(abi: &Abi) -> bool {
    abi.rmw_init_options_t.discovery_options.is_some()
}

fn static_peers_count(options: &rmw_init_options_t) -> usize {
    let discovery = &options.discovery_options;
    if discovery.static_peers.is_null() { 0 } else { discovery.static_peers_count }
}

/// The context that these options ask for.
///
/// # Safety
///
/// They are valid.
unsafe fn asked(abi: &Abi, options: &rmw_init_options_t) -> Result<ContextBuilder> {
    let mut builder = builder();
    // SAFETY: a text of valid options ends with NUL, and `rmw_init` has checked that it is there.
    builder = builder.enclave(unsafe { text("the enclave of options", options.enclave) }?);
    // Also where the environment does not say so.
    builder = builder.distro(abi.distribution.distro());
    if options.domain_id != RMW_DEFAULT_DOMAIN_ID {
        let domain = u32::try_from(options.domain_id).unwrap_or(u32::MAX);
        builder = builder.domain(domain);
    }
    match options.localhost_only {
        // Not said, or said by the discovery options.
        RMW_LOCALHOST_ONLY_DEFAULT => {}
        RMW_LOCALHOST_ONLY_DISABLED if has_discovery(abi) => {}
        RMW_LOCALHOST_ONLY_DISABLED => {
            return Ok(builder.discovery_range(DiscoveryRange::Subnet));
        }
        RMW_LOCALHOST_ONLY_ENABLED => {
            return Ok(builder.discovery_range(DiscoveryRange::Localhost).static_peers([]));
        }
        other => {
            return Err(RmwError::invalid(format!("localhost_only is {other}; allowed: 0, 1, 2")));
        }
    }
    if has_discovery(abi) {
        let range = match options.discovery_options.automatic_discovery_range {
            RMW_AUTOMATIC_DISCOVERY_RANGE_NOT_SET => None,
            RMW_AUTOMATIC_DISCOVERY_RANGE_OFF => Some(DiscoveryRange::Off),
            RMW_AUTOMATIC_DISCOVERY_RANGE_LOCALHOST => Some(DiscoveryRange::Localhost),
            RMW_AUTOMATIC_DISCOVERY_RANGE_SUBNET => Some(DiscoveryRange::Subnet),
            RMW_AUTOMATIC_DISCOVERY_RANGE_SYSTEM_DEFAULT => Some(DiscoveryRange::SystemDefault),
            other => {
                let allowed = "allowed: 0 (not set) to 4 (system default)";
                let what = format!("automatic_discovery_range is {other}; {allowed}");
                return Err(RmwError::invalid(what));
            }
        };
        // SAFETY: the options are valid.
        let peers = unsafe { static_peers(options) }?;
        if let Some(range) = range {
            builder = builder.discovery_range(range);
        }
        // With a range the peers are said too, be it that there are none.
        if range.is_some() || !peers.is_empty() {
            builder = builder.static_peers(peers);
        }
    }
    Ok(builder)
}

/// # Safety
///
/// The options are valid.
unsafe fn static_peers(options: &rmw_init_options_t) -> Result<Vec<String>> {
    let count = static_peers_count(options);
    let peer = |at| {
        // SAFETY: there are as many, and bytes are as good as characters of C.
        let address = unsafe { &(*options.discovery_options.static_peers.add(at)).peer_address };
        let bytes: Vec<u8> = address.iter().map(|it| it.to_ne_bytes()[0]).collect();
        let text = CStr::from_bytes_until_nul(&bytes).ok().and_then(|text| text.to_str().ok());
        let allowed = "allowed: an address or a host name that ends with NUL";
        text.map(str::to_owned)
            .ok_or_else(|| RmwError::invalid(format!("static peer {at} is no text; {allowed}")))
    };
    (0..count).map(peer).collect()
}

fn builder() -> ContextBuilder {
    let builder = Context::builder();
    #[cfg(test)]
    let builder = builder.runtime_dir(tests::folder());
    builder
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::error::tests::told;
    use crate::ffi::rcutils::NO_ALLOCATOR;
    use crate::ffi::rmw::{
        RMW_RET_BAD_ALLOC, RMW_RET_ERROR, RMW_RET_INCORRECT_RMW_IMPLEMENTATION,
        RMW_RET_INVALID_ARGUMENT, RMW_RET_OK,
    };
    use crate::node::{rmw_create_node, rmw_destroy_node};
    use crate::text::tests::Counting;

    /// Where the contexts of this test binary meet.
    pub(crate) fn folder() -> PathBuf {
        std::env::temp_dir().join(format!("tsuji-rmw-{}", std::process::id()))
    }

    /// Options and a context, in a domain of their own. The memory is there until the last.
    pub(crate) struct Begun {
        pub(crate) context: Box<rmw_context_t>,
        pub(crate) options: rmw_init_options_t,
        pub(crate) memory: Counting,
    }

    impl Begun {
        pub(crate) fn new() -> Self {
            let memory = Counting::new(None);
            let options = some_options(&memory);
            let mut context = Box::new(NO_CONTEXT);
            // SAFETY: both are valid.
            let ret = unsafe { rmw_init(&options, &mut *context) };
            assert_eq!((ret, told().as_str()), (RMW_RET_OK, ""));
            Self { context, options, memory }
        }
    }

    impl Drop for Begun {
        fn drop(&mut self) {
            // SAFETY: they were made, and are not used any more.
            let rets = unsafe {
                [
                    rmw_shutdown(&mut *self.context),
                    rmw_context_fini(&mut *self.context),
                    rmw_init_options_fini(&mut self.options),
                ]
            };
            if !std::thread::panicking() {
                assert_eq!(rets, [RMW_RET_OK; 3], "{}", told());
            }
        }
    }

    /// Options as rcl fills them in, for a domain that no other test has.
    fn some_options(memory: &Counting) -> rmw_init_options_t {
        static DOMAIN: AtomicU32 = AtomicU32::new(1);
        let mut options = NO_INIT_OPTIONS;
        // SAFETY: the options are valid.
        let ret = unsafe { rmw_init_options_init(&mut options, memory.allocator()) };
        assert_eq!(ret, RMW_RET_OK);
        assert_eq!(options.domain_id, RMW_DEFAULT_DOMAIN_ID);
        options.enclave = text(memory, "/");
        options.domain_id = DOMAIN.fetch_add(1, Ordering::Relaxed) as usize;
        options
    }

    fn text(memory: &Counting, text: &str) -> *mut c_char {
        let mut batch = Batch::new(&memory.allocator()).unwrap();
        let text = batch.text(text).unwrap();
        batch.keep();
        text
    }

    #[test]
    fn options() {
        let memory = Counting::new(None);
        let mut src = some_options(&memory);
        let mut dst = NO_INIT_OPTIONS;
        let (fine, invalid) = (RMW_RET_OK, RMW_RET_INVALID_ARGUMENT);
        // SAFETY: all are valid or null.
        unsafe {
            assert_eq!(rmw_init_options_init(&mut src, memory.allocator()), invalid);
            assert_eq!(rmw_init_options_init(&mut dst, NO_ALLOCATOR), invalid);
            assert_eq!(rmw_init_options_init(ptr::null_mut(), memory.allocator()), invalid);
            assert_eq!(rmw_init_options_copy(ptr::null(), &mut dst), invalid);
            assert_eq!(rmw_init_options_copy(&src, ptr::null_mut()), invalid);
            assert_eq!(rmw_init_options_copy(&NO_INIT_OPTIONS, &mut dst), invalid);
            src.security_options.security_root_path = text(&memory, "/keys");
            assert_eq!(rmw_init_options_copy(&src, &mut dst), fine);
            assert_ne!(src.enclave, dst.enclave);
            assert_eq!(CStr::from_ptr(dst.enclave), c"/");
            assert_eq!(CStr::from_ptr(dst.security_options.security_root_path), c"/keys");
            assert_eq!(dst.domain_id, src.domain_id);
            assert_eq!(rmw_init_options_copy(&src, &mut dst), invalid);
            src.implementation_identifier = c"rmw_x".as_ptr();
            let other = RMW_RET_INCORRECT_RMW_IMPLEMENTATION;
            assert_eq!(rmw_init_options_fini(&mut src), other);
            assert_eq!(rmw_init_options_copy(&src, &mut NO_INIT_OPTIONS.clone()), other);
            src.implementation_identifier = IDENTIFIER.as_ptr();
            for options in [&mut src, &mut dst] {
                assert_eq!(rmw_init_options_fini(options), fine);
                assert!(options.implementation_identifier.is_null());
                assert_eq!(rmw_init_options_fini(options), invalid);
            }
            assert_eq!(rmw_init_options_fini(ptr::null_mut()), invalid);
        }
    }

    fn peers(memory: &Counting, all: &[&str]) -> *mut rmw_peer_address_t {
        let mut batch = Batch::new(&memory.allocator()).unwrap();
        let peers = batch.zeroed::<rmw_peer_address_t>(all.len()).unwrap();
        batch.keep();
        for (at, peer) in all.iter().enumerate() {
            // SAFETY: there are as many, each with more room.
            unsafe {
                let to = (&raw mut (*peers.add(at)).peer_address).cast();
                ptr::copy_nonoverlapping(peer.as_ptr(), to, peer.len());
            }
        }
        peers
    }

    #[test]
    fn peers_are_copied() {
        let memory = Counting::new(None);
        let mut src = some_options(&memory);
        src.discovery_options.automatic_discovery_range = RMW_AUTOMATIC_DISCOVERY_RANGE_SUBNET;
        src.discovery_options.static_peers = peers(&memory, &["192.0.2.1", "far"]);
        src.discovery_options.static_peers_count = 2;
        src.discovery_options.allocator = memory.allocator();
        let mut dst = NO_INIT_OPTIONS;
        // SAFETY: all are valid.
        unsafe {
            assert_eq!(rmw_init_options_copy(&src, &mut dst), RMW_RET_OK);
            assert_eq!(static_peers(&dst).unwrap(), ["192.0.2.1", "far"]);
            let asked = format!("{:?}", asked(abi::here().unwrap(), &dst).unwrap());
            assert!(asked.contains("static_peers: Some([\"192.0.2.1\", \"far\"])"), "{asked}");
            assert!(asked.contains("discovery_range: Some(Subnet)"), "{asked}");
            assert_eq!(rmw_init_options_fini(&mut src), RMW_RET_OK);
            assert_eq!(rmw_init_options_fini(&mut dst), RMW_RET_OK);
        }
    }

    #[test]
    fn whom_to_find() {
        let memory = Counting::new(None);
        let mut options = some_options(&memory);
        let check = |options: &rmw_init_options_t, expect: &str| {
            // SAFETY: the options are valid.
            let asked = format!("{:?}", unsafe { asked(abi::here().unwrap(), options) }.unwrap());
            assert!(asked.contains(expect), "{asked}");
        };
        check(&options, "discovery_range: None, static_peers: None");
        check(&options, "enclave: Some(\"/\")");
        options.localhost_only = RMW_LOCALHOST_ONLY_ENABLED;
        check(&options, "discovery_range: Some(Localhost), static_peers: Some([])");
        options.localhost_only = RMW_LOCALHOST_ONLY_DISABLED;
        for (range, expect) in [
            (RMW_AUTOMATIC_DISCOVERY_RANGE_NOT_SET, "discovery_range: None, static_peers: None"),
            (
                RMW_AUTOMATIC_DISCOVERY_RANGE_OFF,
                "discovery_range: Some(Off), static_peers: Some([])",
            ),
            (RMW_AUTOMATIC_DISCOVERY_RANGE_LOCALHOST, "discovery_range: Some(Localhost)"),
            (RMW_AUTOMATIC_DISCOVERY_RANGE_SUBNET, "discovery_range: Some(Subnet)"),
            (RMW_AUTOMATIC_DISCOVERY_RANGE_SYSTEM_DEFAULT, "discovery_range: Some(SystemDefault)"),
        ] {
            options.discovery_options.automatic_discovery_range = range;
            check(&options, expect);
        }
        options.localhost_only = 7;
        // SAFETY: the options are valid.
        let refused = unsafe { asked(abi::here().unwrap(), &options) }.unwrap_err();
        assert_eq!(refused.ret(), RMW_RET_INVALID_ARGUMENT);
        // SAFETY: the options are valid.
        assert_eq!(unsafe { rmw_init_options_fini(&mut options) }, RMW_RET_OK);
    }

    #[test]
    fn from_init_to_fini() {
        let memory = Counting::new(None);
        let mut options = some_options(&memory);
        let mut context = NO_CONTEXT;
        let (fine, invalid) = (RMW_RET_OK, RMW_RET_INVALID_ARGUMENT);
        let other = RMW_RET_INCORRECT_RMW_IMPLEMENTATION;
        // SAFETY: all are valid or null.
        unsafe {
            assert_eq!(rmw_init(ptr::null(), &mut context), invalid);
            assert_eq!(rmw_init(&options, ptr::null_mut()), invalid);
            assert_eq!(rmw_init(&NO_INIT_OPTIONS, &mut context), invalid);
            let mut bad = options;
            bad.implementation_identifier = c"rmw_x".as_ptr();
            assert_eq!(rmw_init(&bad, &mut context), other);
            bad = rmw_init_options_t { enclave: ptr::null_mut(), ..options };
            assert_eq!(rmw_init(&bad, &mut context), invalid);
            bad = rmw_init_options_t { domain_id: 233, ..options };
            assert_eq!(rmw_init(&bad, &mut context), invalid);
            assert_eq!(told(), "domain id 233 is out of range; allowed: 0 to 232");
            bad = rmw_init_options_t { domain_id: usize::MAX - 1, ..options };
            assert_eq!(rmw_init(&bad, &mut context), invalid);
            bad = options;
            bad.security_options.enforce_security = RMW_SECURITY_ENFORCEMENT_ENFORCE;
            assert_eq!(rmw_init(&bad, &mut context), invalid);
            assert_eq!(told(), "security is enforced, and ROS_SECURITY_ENABLE is not true");
            assert_eq!(rmw_shutdown(ptr::null_mut()), invalid);
            assert_eq!(rmw_shutdown(&mut context), invalid);
            assert_eq!(rmw_context_fini(ptr::null_mut()), invalid);
            assert_eq!(rmw_context_fini(&mut context), invalid);

            for _ in 0..2 {
                told();
                assert_eq!((rmw_init(&options, &mut context), told().as_str()), (fine, ""));
                assert_eq!(context.actual_domain_id, options.domain_id);
                assert_eq!(CStr::from_ptr(context.options.enclave), c"/");
                assert_eq!(rmw_init(&options, &mut context), invalid);
                assert_eq!(rmw_context_fini(&mut context), invalid);
                context.implementation_identifier = c"rmw_x".as_ptr();
                assert_eq!(rmw_shutdown(&mut context), other);
                assert_eq!(rmw_context_fini(&mut context), other);
                context.implementation_identifier = IDENTIFIER.as_ptr();
                assert_eq!(rmw_shutdown(&mut context), fine);
                assert_eq!(rmw_shutdown(&mut context), fine);
                assert_eq!(rmw_context_fini(&mut context), fine);
                assert_eq!(rmw_context_fini(&mut context), invalid);
            }
            assert_eq!(rmw_init_options_fini(&mut options), fine);
        }
    }

    #[test]
    fn one_context_ends_and_the_other_goes_on() {
        let one = Begun::new();
        let mut other = NO_CONTEXT;
        // SAFETY: all are valid, and of this test.
        unsafe {
            assert_eq!(rmw_init(&one.options, &mut other), RMW_RET_OK);
            assert_eq!(rmw_shutdown(&mut other), RMW_RET_OK);
            assert_eq!(rmw_context_fini(&mut other), RMW_RET_OK);
            let context = (&raw const *one.context).cast_mut();
            let node = rmw_create_node(context, c"still".as_ptr(), c"/".as_ptr());
            assert!(!node.is_null(), "{}", told());
            assert_eq!(rmw_destroy_node(node), RMW_RET_OK);
        }
    }

    #[test]
    fn a_context_with_nodes_is_not_finalised() {
        let mut begun = Begun::new();
        let context: *mut _ = &mut *begun.context;
        // SAFETY: all are valid, and of this test.
        unsafe {
            let node = rmw_create_node(context, c"node".as_ptr(), c"/".as_ptr());
            assert_eq!(rmw_shutdown(context), RMW_RET_OK);
            assert_eq!(rmw_context_fini(context), RMW_RET_ERROR);
            assert_eq!(told(), "context still has 1 nodes");
            assert_eq!(rmw_destroy_node(node), RMW_RET_OK);
        }
    }

    #[test]
    fn every_allocation_may_fail() {
        let source = Counting::new(None);
        let mut src = some_options(&source);
        src.security_options.security_root_path = text(&source, "/keys");
        src.discovery_options.static_peers = peers(&source, &["far"]);
        src.discovery_options.static_peers_count = 1;
        src.discovery_options.allocator = source.allocator();
        for most in 0..3 {
            let memory = Counting::new(Some(most));
            let failing = rmw_init_options_t { allocator: memory.allocator(), ..src };
            let (mut dst, mut context) = (NO_INIT_OPTIONS, NO_CONTEXT);
            // SAFETY: all are valid.
            unsafe {
                assert_eq!(rmw_init_options_copy(&failing, &mut dst), RMW_RET_BAD_ALLOC);
                assert!(dst.implementation_identifier.is_null());
            }
            let memory = Counting::new(Some(most));
            let failing = rmw_init_options_t { allocator: memory.allocator(), ..src };
            // SAFETY: all are valid.
            unsafe {
                assert_eq!(rmw_init(&failing, &mut context), RMW_RET_BAD_ALLOC);
                assert!(context.implementation_identifier.is_null() && context.impl_.is_null());
            }
        }
        // SAFETY: the options are valid.
        assert_eq!(unsafe { rmw_init_options_fini(&mut src) }, RMW_RET_OK);
    }
}
