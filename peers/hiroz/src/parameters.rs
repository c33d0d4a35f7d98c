//! Parameters of a node, and asking for those of another.

use std::sync::Arc;

use hiroz::entity::EndpointKind;
use hiroz::parameter::IntegerRange;
use hiroz::parameter::wire_types::{WireParameterEvent, parameter_event_type_info};
use hiroz::prelude::*;
use tokio::runtime::Handle;

use crate::{node, qos, say, until, until_line, until_told};

/// Of most kinds one, one with a range, and one with a rule.
pub(crate) fn offer() -> Result<()> {
    let (_context, node) = node()?;
    let text = |it: &str| it.to_owned();
    let rate = IntegerRange { from_value: 1, to_value: 1000, step: 1 };
    for (name, value) in [
        ("enabled", ParameterValue::Bool(true)),
        ("rate_hz", ParameterValue::Integer(1)),
        ("arm.gain", ParameterValue::Double(0.5)),
        ("label", ParameterValue::String(text("demo"))),
        ("raw", ParameterValue::ByteArray(vec![1, 2, 3])),
        ("tags", ParameterValue::StringArray(vec![text("a"), text("b")])),
        ("sizes", ParameterValue::IntegerArray(vec![640, 480])),
    ] {
        let mut described = ParameterDescriptor::new(name, value.parameter_type());
        if name == "rate_hz" {
            described.description = text("how often, in Hz");
            described.integer_range = Some(rate.clone());
        }
        node.declare_parameter(name, value, described).map_err(|error| error.to_string())?;
    }
    node.on_set_parameters(|parameters| {
        let is_empty = |it: &Parameter| it.value == ParameterValue::String(String::new());
        if parameters.iter().any(is_empty) {
            return SetParametersResult::failure("a label has letters");
        }
        for Parameter { name, value } in parameters {
            say(&format!("set {name} {value:?}"));
        }
        SetParametersResult::success()
    });
    say("ready");
    until_told();
    Ok(())
}

const SERVICES: [&str; 6] = [
    "list_parameters",
    "get_parameters",
    "get_parameter_types",
    "describe_parameters",
    "set_parameters",
    "set_parameters_atomically",
];

/// Asks `of` for all that it has and for more of `name`, and sets that to each of `values`, in both ways.
pub(crate) fn inspect(of: &str, name: &str, values: &[&str]) -> Result<()> {
    let (_context, node) = node()?;
    let node = Arc::new(node);
    let target = ParameterTarget::from_fqn(of).ok_or("a node's name begins with /")?;
    let client = ParameterClient::new(Arc::clone(&node), target)?;
    let full_name = of.to_owned();
    let heard = move |event: WireParameterEvent| {
        for it in event.changed_parameters.iter().filter(|_| event.node == full_name) {
            say(&format!("event {} {:?}", it.name, it.value.double_value));
        }
    };
    let events = node.create_sub_impl::<WireParameterEvent>(
        "/parameter_events",
        Some(parameter_event_type_info()),
    );
    let _events = events.with_qos(qos(false, 1000)).build_with_callback(heard)?;
    say("ready");
    let is_there = |it: &&str| 0 < node.graph().count(EndpointKind::Service, format!("{of}/{it}"));
    until(|| SERVICES.iter().all(is_there));
    say("matched");
    until_line();
    Handle::current().block_on(async {
        let list = client.list(&[""; 0], None).await?;
        say(&format!("names {} of {}", list.names.join(" "), list.prefixes.join(" ")));
        say(&format!("value {:?}", client.get(&[name]).await?));
        say(&format!("type {:?}", client.get_types(&[name]).await?));
        for it in client.describe(&[name]).await? {
            let range = it.floating_point_range.map(|it| (it.from_value, it.to_value));
            say(&format!("described {} {:?} {:?} {range:?}", it.name, it.type_, it.description));
        }
        for value in values {
            let parameter = Parameter::new(name, ParameterValue::Double(value.parse()?));
            for it in client.set(std::slice::from_ref(&parameter)).await? {
                say(&format!("set {} {:?}", it.successful, it.reason));
            }
            let it = client.set_atomically(&[parameter]).await?;
            say(&format!("set atomically {} {:?}", it.successful, it.reason));
        }
        Ok::<(), zenoh::Error>(())
    })?;
    say("done");
    until_told();
    Ok(())
}
