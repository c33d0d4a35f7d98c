//! Both ends of `example_interfaces/action/Fibonacci`.

use hiroz::action::messages::CancelGoalServiceResponse;
use hiroz::action::server::ZActionServer;
use hiroz::prelude::*;
use tokio::runtime::Handle;

use crate::messages::{Fibonacci, FibonacciFeedback, FibonacciGoal, FibonacciResult};
use crate::{WITHIN, node, qos, say, until_line, until_told};

/// Goals beyond are rejected.
const ORDER_MAX: i32 = 25;

/// Hiroz says and hears the status as volatile if it is not told; all others keep the last one for late joiners.
fn status_qos() -> QosProfile {
    qos(true, 1)
}

pub(crate) fn pursue(name: &str) -> Result<()> {
    let (_context, node) = node()?;
    let builder = node.create_action_server::<Fibonacci>(name);
    let server = builder.with_status_topic_qos(status_qos()).build()?;
    tokio::spawn(async move {
        if let Err(error) = pursue_each(&server).await {
            say(&format!("failed: {error}"));
        }
    });
    say("ready");
    until_told();
    Ok(())
}

/// One goal after the other. Not by `with_handler`: that accepts all goals, and while somebody waits for a result it
/// answers nobody who wants one given up.
async fn pursue_each(server: &ZActionServer<Fibonacci>) -> Result<()> {
    loop {
        let goal = server.recv_goal().await?;
        let order = goal.goal().order;
        if ORDER_MAX < order {
            goal.reject()?;
            say(&format!("rejected {order}"));
            continue;
        }
        let goal = goal.accept().execute();
        say(&format!("accepted {order}"));
        let mut sequence = vec![0, 1];
        for _ in 1..order.max(2) {
            sequence.push(sequence[sequence.len() - 1] + sequence[sequence.len() - 2]);
            goal.publish_feedback(FibonacciFeedback { sequence: sequence.clone() })?;
        }
        let result = FibonacciResult { sequence };
        if 0 <= order {
            goal.succeed(result)?;
            say(&format!("succeeded {order}"));
            continue;
        }
        // A negative order is pursued until it is to be given up.
        loop {
            let (request, query) = server.recv_cancel().await?;
            let is_own = request.goal_info.goal_id == goal.info().goal_id;
            let response = match is_own && server.request_cancel(request.goal_info.goal_id) {
                true => CancelGoalServiceResponse {
                    return_code: 0,
                    goals_canceling: vec![request.goal_info],
                },
                // ERROR_UNKNOWN_GOAL_ID
                false => CancelGoalServiceResponse { return_code: 2, goals_canceling: Vec::new() },
            };
            server.send_cancel_response_low(&query, &response)?;
            if is_own {
                break;
            }
        }
        goal.canceled(result)?;
        say(&format!("canceled {order}"));
    }
}

/// What is to be given up once all feedback was heard.
#[derive(Clone, Copy)]
pub(crate) enum Cancel {
    Nothing,
    /// This goal.
    Own,
    /// Whatever the server pursues.
    All,
}

pub(crate) fn ask(name: &str, order: i32, cancel: Cancel) -> Result<()> {
    let (_context, node) = node()?;
    let builder = node.create_action_client::<Fibonacci>(name);
    let client = builder.with_status_topic_qos(status_qos()).build()?;
    say("ready");
    Handle::current().block_on(async {
        if !client.wait_for_server(WITHIN).await {
            return Err(format!("no server of {name}").into());
        }
        say("matched");
        until_line();
        let mut goal = match client.send_goal(FibonacciGoal { order }).await {
            // It has no other sign of it.
            Err(error) if error.to_string() == "Goal rejected" => {
                say("rejected");
                return Ok(());
            }
            goal => goal?,
        };
        say("accepted");
        let mut feedback = goal.feedback().ok_or("the feedback was taken before")?;
        let mut status = goal.status_watch().ok_or("the status was taken before")?;
        let id = goal.id();
        let asking = client.clone();
        let result = tokio::spawn(async move { asking.get_result(id).await });
        for _ in 1..order.max(2) {
            let heard = feedback.recv().await.ok_or("no feedback any more")?;
            say(&format!("feedback {:?}", heard.sequence));
        }
        let told = match cancel {
            Cancel::Nothing => None,
            Cancel::Own => Some(goal.cancel().await?),
            Cancel::All => Some(client.cancel_all_goals().await?),
        };
        if let Some(told) = told {
            say(&format!("canceling {} {}", told.return_code, told.goals_canceling.len()));
        }
        let sequence = result.await??.sequence;
        let status = *status.wait_for(|it| it.is_terminal()).await?;
        say(&format!("{status:?} {sequence:?}"));
        Ok::<(), zenoh::Error>(())
    })?;
    until_told();
    Ok(())
}
