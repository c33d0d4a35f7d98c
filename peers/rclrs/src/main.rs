//! `rclrs-peer`: a ROS 2 node over rclrs, on whichever rmw it is started with. It knows nothing of tsuji.
//!
//! It says `ready`, and then a line for all that comes:
//! - what is published on `to_rclrs` it says and publishes again on `from_rclrs`;
//! - it serves `rclrs_names`, which answers the prefixes that it was asked for, and calls `our_names` once when that is there;
//! - it has the parameter `speed`.
//!
//! It ends when its standard input does.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::Read;
use std::sync::Arc;

use rclrs::vendor::rcl_interfaces::msg::{ListParametersResult, Log};
use rclrs::vendor::rcl_interfaces::srv::{
    ListParameters, ListParameters_Request, ListParameters_Response,
};
use rclrs::{
    Context, CreateBasicExecutor, IntoPrimitiveOptions, MandatoryParameter, RclrsErrorFilter,
    SpinOptions,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut executor = Context::default_from_env()?.create_basic_executor();
    let node = executor.create_node("rclrs_peer")?;
    let _speed: MandatoryParameter<i64> = node.declare_parameter("speed").default(3).mandatory()?;

    let back = node.create_publisher::<Log>("from_rclrs".reliable().keep_last(100))?;
    let heard = move |message: Log| {
        say(&format!("heard {} {}", message.msg.len(), message.level));
        if let Err(error) = back.publish(message) {
            say(&format!("not published: {error}"));
        }
    };
    let _subscription = node.create_subscription("to_rclrs".reliable().keep_last(100), heard)?;

    let answer = |request: ListParameters_Request| {
        say(&format!("asked for {}", request.prefixes.len()));
        let result = ListParametersResult { names: request.prefixes, ..Default::default() };
        ListParameters_Response { result }
    };
    let _service = node.create_service::<ListParameters, _>("rclrs_names", answer)?;

    let client = node.create_client::<ListParameters>("our_names")?;
    let calls = Arc::clone(&client);
    let call = executor.commands().run(async move {
        if calls.notify_on_service_ready().await.is_err() {
            return;
        }
        let request = ListParameters_Request { prefixes: vec!["a".into(), "b".into()], depth: 7 };
        match calls.call::<_, ListParameters_Response>(&request) {
            Ok(reply) => match reply.await {
                Ok(reply) => say(&format!("answered {}", reply.result.names.join(" "))),
                Err(_) => say("no answer"),
            },
            Err(error) => say(&format!("not called: {error}")),
        }
    });
    drop(call);

    let commands = Arc::clone(executor.commands());
    std::thread::spawn(move || {
        let mut rest = Vec::new();
        let _ = std::io::stdin().read_to_end(&mut rest);
        commands.halt_spinning();
    });
    say("ready");
    executor.spin(SpinOptions::default()).first_error()?;
    Ok(())
}

/// One line, at once.
fn say(line: &str) {
    use std::io::Write;
    let mut output = std::io::stdout().lock();
    // Nobody may be left to be told.
    let _ = writeln!(output, "{line}");
    let _ = output.flush();
}
