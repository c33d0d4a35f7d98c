//! An action: `fibonacci serve` pursues goals, `fibonacci ask 10` asks for one and tells what it hears of it. Ctrl-C ends
//! the server; a goal that it pursues is aborted by that.
#![allow(clippy::print_stdout, reason = "it shows what it does")]

use std::time::Duration;

use tsuji::action::{ActionServerOptions, GoalHandle};
use tsuji::interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciGoal, FibonacciResult,
};
use tsuji::{Context, Error, ErrorKind};

const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> tsuji::Result<()> {
    let context = Context::builder().args(std::env::args().skip(1)).build()?;
    let arguments: Vec<&str> = context.arguments().iter().map(String::as_str).collect();
    let order = arguments.get(1).and_then(|it| it.parse().ok());
    match (&arguments[..], order) {
        (["serve"], _) => serve(&context),
        (["ask", _], Some(order)) => ask(&context, order),
        _ => Err(Error::new(
            ErrorKind::Invalid,
            "usage: fibonacci serve | ask ORDER [--ros-args ...]; ORDER is a whole number",
        )),
    }
}

fn serve(context: &Context) -> tsuji::Result<()> {
    context.shutdown_on_signals()?;
    let node = context.node("fibonacci_server")?;
    let _server = node.create_action_server(
        ActionServerOptions::<Fibonacci>::new("fibonacci").on_goal(|id, goal| {
            println!("goal {id}: order {}", goal.order);
            (0..=46).contains(&goal.order)
        }),
        |goal| {
            if let Err(error) = pursue(goal) {
                println!("{error}");
            }
        },
    )?;
    println!("serving /fibonacci");
    tsuji::spin(&node)
}

fn pursue(goal: GoalHandle<Fibonacci>) -> tsuji::Result<()> {
    let mut sequence = vec![0, 1];
    for at in 1..goal.goal().order as usize {
        sequence.push(sequence[at] + sequence[at - 1]);
        goal.publish_feedback(FibonacciFeedback { sequence: sequence.clone() })?;
        if goal.sleep(Duration::from_millis(500)) {
            return goal.canceled(FibonacciResult { sequence });
        }
    }
    goal.succeed(FibonacciResult { sequence })
}

fn ask(context: &Context, order: i32) -> tsuji::Result<()> {
    let node = context.node("fibonacci_client")?;
    let client = node.create_action_client::<Fibonacci>("fibonacci")?;
    let Some(goal) = client.send_goal(FibonacciGoal { order }, PATIENCE)? else {
        println!("the goal was rejected");
        return Ok(());
    };
    println!("goal {} was accepted", goal.id());
    while let Some(feedback) = goal.next_feedback(PATIENCE)? {
        println!("so far: {:?}", feedback.sequence);
    }
    let (status, result) = goal.result(PATIENCE)?;
    println!("{status}: {:?}", result.sequence);
    Ok(())
}
