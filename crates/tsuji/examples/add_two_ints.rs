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

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tsuji::{Context, Node};
use tsuji_interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};

fn main() -> Result<(), Box<dyn Error>> {
    let numbers = std::env::args().skip(1).map(|it| it.parse());
    match numbers.collect::<Result<Vec<i64>, _>>()?[..] {
        [] => serve()?,
        [a, b] => call(AddTwoIntsRequest { a, b })?,
        _ => return Err("allowed: two whole numbers, or none to be the server".into()),
    }
    Ok(())
}

fn serve() -> tsuji::Result<()> {
    let node = node("adder")?;
    let _service = node.create_service::<AddTwoInts>("add_two_ints", add)?;
    tsuji::spin(&node)
}

fn add(request: Arc<AddTwoIntsRequest>) -> AddTwoIntsResponse {
    println!("{} + {}", request.a, request.b);
    AddTwoIntsResponse { sum: request.a.wrapping_add(request.b) }
}

fn call(request: AddTwoIntsRequest) -> tsuji::Result<()> {
    let client = node("caller")?.create_client::<AddTwoInts>("add_two_ints")?;
    println!("{}", client.call(request, Duration::from_secs(5))?.sum);
    Ok(())
}

fn node(name: &str) -> tsuji::Result<Node> {
    let context = Context::new()?;
    context.shutdown_on_signals()?;
    context.node(name)
}
