//! A service that adds two numbers, and a client of it.
//!
//! ```sh
//! cargo run --example add_two_ints
//! cargo run --example add_two_ints -- 20 22
//! tsuji service call /add_two_ints '{a: 20, b: 22}'
//! ```
//!
//! The first one is the server; Ctrl-C ends it.
#![allow(clippy::print_stdout, reason = "it speaks to its user")]

use std::sync::Arc;
use std::time::Duration;

use tsuji::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use tsuji::{Context, Error, ErrorKind};

fn main() -> tsuji::Result<()> {
    let context = Context::builder().args(std::env::args().skip(1)).build()?;
    context.shutdown_on_signals()?;
    let numbers: Result<Vec<i64>, _> = context.arguments().iter().map(|it| it.parse()).collect();
    match numbers.as_deref() {
        Ok([]) => serve(&context),
        Ok(&[a, b]) => call(&context, AddTwoIntsRequest { a, b }),
        _ => Err(Error::new(
            ErrorKind::Invalid,
            "usage: add_two_ints [A B] [--ros-args ...]; A and B are whole numbers, without them it is the server",
        )),
    }
}

fn serve(context: &Context) -> tsuji::Result<()> {
    let node = context.node("adder")?;
    let _service = node.create_service::<AddTwoInts>("add_two_ints", add)?;
    tsuji::spin(&node)
}

fn add(request: Arc<AddTwoIntsRequest>) -> AddTwoIntsResponse {
    println!("{} + {}", request.a, request.b);
    AddTwoIntsResponse { sum: request.a.wrapping_add(request.b) }
}

fn call(context: &Context, request: AddTwoIntsRequest) -> tsuji::Result<()> {
    let client = context.node("caller")?.create_client::<AddTwoInts>("add_two_ints")?;
    println!("{}", client.call(request, Duration::from_secs(5))?.sum);
    Ok(())
}
