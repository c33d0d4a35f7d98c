//! Content filters of subscriptions: `rmw_subscription_set_content_filter` and what a subscription is made with.

use std::sync::Arc;

use tsuji::dynamic::{TypeDescription, load_full_text};
use tsuji::{ContentFilterOptions, SubscriptionOptions};

use crate::abi::{self, Abi};
use crate::check;
use crate::error::{Result, RmwError, guard};
use crate::ffi::rcutils::rcutils_allocator_t;
use crate::ffi::rmw::{
    rmw_ret_t, rmw_subscription_content_filter_options_t, rmw_subscription_options_t,
    rmw_subscription_t,
};
use crate::ffi::rosidl::rosidl_message_type_support_t;
use crate::handle::inside;
use crate::plan::{self, Plan};
use crate::text::Batch;

/// Has a subscription filter as these options ask, and know its type's definition so that a filter can be set later.
///
/// # Safety
///
/// The options are valid, and the plan was made of this type support.
pub(crate) unsafe fn asked(
    subscribing: SubscriptionOptions,
    options: &rmw_subscription_options_t,
    support: *const rosidl_message_type_support_t,
    plan: &Plan,
    abi: &Abi,
) -> Result<SubscriptionOptions> {
    // SAFETY: the caller promises it.
    let described = unsafe { description(support, plan, abi) };
    // SAFETY: the caller promises it.
    let Some(filter) = (unsafe { options.content_filter_options.as_ref() }) else {
        return Ok(match described {
            Ok(ty) => subscribing.type_fields(ty),
            // It is told when somebody wants to filter.
            Err(_) => subscribing,
        });
    };
    // SAFETY: the caller promises it.
    let filter = unsafe { read(filter) }?;
    Ok(subscribing
        .type_fields(described?)
        .content_filter(filter.filter_expression, filter.expression_parameters))
}

/// The definition of a type: read once for each.
///
/// # Safety
///
/// The plan was made of this type support.
unsafe fn description(
    support: *const rosidl_message_type_support_t,
    plan: &Plan,
    abi: &Abi,
) -> Result<Arc<TypeDescription>> {
    plan.description(|| {
        // SAFETY: the caller promises it.
        let text = unsafe { plan::definition(support, abi) }?;
        load_full_text(plan.type_name(), &text).map_err(|error| {
            RmwError::unsupported(format!("{} cannot be filtered: {error}", plan.type_name()))
        })
    })
}

/// A filter as C passes it.
///
/// # Safety
///
/// Its texts are null or end with NUL.
unsafe fn read(filter: &rmw_subscription_content_filter_options_t) -> Result<ContentFilterOptions> {
    let parameters = &filter.expression_parameters;
    // SAFETY: the caller promises it.
    let expression = unsafe { check::text("filter_expression", filter.filter_expression) }?;
    let mut all = Vec::new();
    for at in 0..parameters.size {
        check::not_null("expression_parameters", parameters.data)?;
        // SAFETY: there are as many, and the caller promises the rest.
        all.push(unsafe { check::text("an expression parameter", *parameters.data.add(at)) }?);
    }
    Ok(ContentFilterOptions::new(expression, all))
}

/// Replaces the filter of a subscription; an empty expression ends it.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_subscription_set_content_filter(
    subscription: *mut rmw_subscription_t,
    options: *const rmw_subscription_content_filter_options_t,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let of = unsafe { inside(subscription) }?;
        // SAFETY: the caller promises it.
        let filter = unsafe { read(check::reference("options", options)?) }?;
        of.set_content_filter(filter)?;
        let abi = abi::here()?;
        // Others may be reading the rest of it meanwhile.
        if let Some(offset) = abi.rmw_subscription_t.is_cft_enabled {
            // SAFETY: it is one of ours, and the field is inside.
            let place = unsafe { subscription.cast::<u8>().add(offset) };
            // SAFETY: nobody else uses this field while its filter is set.
            unsafe { place.cast::<bool>().write(of.content_filter().is_some()) };
        }
        Ok(())
    })
}

/// The filter of a subscription, in memory of the allocator. Where it has none that is an error, as with other rmws.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_subscription_get_content_filter(
    subscription: *const rmw_subscription_t,
    allocator: *mut rcutils_allocator_t,
    options: *mut rmw_subscription_content_filter_options_t,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let of = unsafe { inside(subscription) }?;
        // SAFETY: the caller promises it.
        let mut batch = Batch::new(unsafe { check::reference("allocator", allocator) }?)?;
        // SAFETY: the caller promises it.
        let options = unsafe { check::reference_mut("options", options) }?;
        let filter = of
            .content_filter()
            .ok_or_else(|| RmwError::error("the subscription has no content filter"))?;
        let made = rmw_subscription_content_filter_options_t {
            filter_expression: batch.text(&filter.filter_expression)?,
            expression_parameters: batch
                .texts(filter.expression_parameters.iter().map(String::as_str))?,
        };
        batch.keep();
        *options = made;
        Ok(())
    })
}
