//! Both ends of `example_interfaces/action/Fibonacci`.

use futures::{FutureExt as _, StreamExt as _, select_biased};
use ros2_client::action::{
    ActionClientQosPolicies, ActionServerQosPolicies, AsyncActionServer, GoalEndStatus,
};
use ros2_client::builtin_interfaces::Time;
use ros2_client::qos::{Durability, History, QosProfile, WhenFull};
use ros2_client::{ActionTypeName, ServiceMapping};

use crate::arguments::{Ask, Pursue};
use crate::end::End;
use crate::peer::{Peer, absolute, say};
use crate::view::View;

/// Goals beyond are rejected.
const ORDER_MAX: i32 = 25;

fn qos() -> QosProfile {
    QosProfile::subscription_default()
        .reliability_reliable(WhenFull::Block)
        .history(History::KeepLast { depth: 10 })
}

/// rcl_action_qos_profile_status_default
fn status_qos() -> QosProfile {
    qos().durability(Durability::TransientLocal).history(History::KeepLast { depth: 1 })
}

fn action_type() -> ActionTypeName {
    ActionTypeName::new("example_interfaces", "Fibonacci")
}

const SERVICES: [&str; 3] = ["send_goal", "cancel_goal", "get_result"];

/// Whether a client is there by everything that an action has.
fn is_asked(view: &View, action: &str) -> bool {
    let feedback = format!("rt{action}/_action/feedback");
    view.readers_matched(&feedback) > 0
        && SERVICES.iter().all(|service| {
            view.writers_matched(&format!("rq{action}/_action/{service}Request")) > 0
                && view.readers_matched(&format!("rr{action}/_action/{service}Reply")) > 0
        })
}

fn is_served(view: &View, action: &str) -> bool {
    let feedback = format!("rt{action}/_action/feedback");
    view.writers_matched(&feedback) > 0
        && SERVICES.iter().all(|service| {
            view.readers_matched(&format!("rq{action}/_action/{service}Request")) > 0
                && view.writers_matched(&format!("rr{action}/_action/{service}Reply")) > 0
        })
}

fn failed(error: impl std::fmt::Debug) -> End {
    End::Failed(format!("{error:?}"))
}

pub(crate) async fn pursue(peer: &mut Peer, arguments: &Pursue) -> Result<(), End> {
    let (name, text) = absolute(&arguments.name)?;
    let policies = ActionServerQosPolicies {
        goal_service: qos(),
        result_service: qos(),
        cancel_service: qos(),
        feedback_publisher: qos(),
        status_publisher: status_qos(),
    };
    let mapping = ServiceMapping::from(arguments.mapping);
    let server = peer
        .node
        .create_action_server::<i32, Vec<i32>, Vec<i32>>(mapping, &name, &action_type(), policies)
        .map_err(|error| End::failed(&text, error))?;
    let server = AsyncActionServer::new(server);
    say("ready")?;
    let met = peer.until(|| format!("a client of {text}"), |view| is_asked(view, &text));
    match met.await {
        Err(End::Interrupted(_)) => return Err(End::Told),
        met => met?,
    }
    say("matched")?;
    loop {
        let goal = peer.wait(|| format!("a goal for {text}"), server.receive_new_goal()).await;
        let goal = match goal {
            Err(End::Interrupted(_)) => return Err(End::Told),
            goal => goal?.map_err(failed)?,
        };
        let order = server.get_new_goal(goal).unwrap_or_default();
        if ORDER_MAX < order {
            server.reject_goal(goal).await.map_err(failed)?;
            say(format_args!("rejected {order}"))?;
            continue;
        }
        let goal = server.accept_goal(goal).await.map_err(failed)?;
        let goal = server.start_executing_goal(goal).await.map_err(failed)?;
        say(format_args!("accepted {order}"))?;
        let mut sequence = vec![0_i32, 1];
        for _ in 1..order.max(2) {
            sequence.push(sequence[sequence.len() - 1].wrapping_add(sequence[sequence.len() - 2]));
            server.publish_feedback(goal, sequence.clone()).await.map_err(failed)?;
        }
        let mut status = GoalEndStatus::Succeeded;
        // A negative order is pursued until it is to be given up.
        while order < 0 && !matches!(status, GoalEndStatus::Canceled) {
            let what = || format!("a wish to cancel {order}");
            let wish = peer.wait(what, server.receive_cancel_request()).await?.map_err(failed)?;
            let own = wish.contains_goal(&goal.goal_id()).then(|| goal.goal_id());
            if own.is_some() {
                status = GoalEndStatus::Canceled;
            }
            server.respond_to_cancel_requests(&wish, own.into_iter()).await.map_err(failed)?;
        }
        let what = || format!("who asks for the result of {order}");
        let told = peer.wait(what, server.send_result_response(goal, status, sequence)).await;
        match told {
            Err(End::Interrupted(_)) => return Err(End::Told),
            told => told?.map_err(failed)?,
        }
        say(format_args!("{status:?} {order}"))?;
    }
}

pub(crate) async fn ask(peer: &mut Peer, arguments: &Ask) -> Result<(), End> {
    let (name, text) = absolute(&arguments.name)?;
    let policies = ActionClientQosPolicies {
        goal_service: qos(),
        result_service: qos(),
        cancel_service: qos(),
        feedback_subscription: qos(),
        status_subscription: status_qos(),
    };
    let mapping = ServiceMapping::from(arguments.mapping);
    let client = peer
        .node
        .create_action_client::<i32, Vec<i32>, Vec<i32>>(mapping, &name, &action_type(), policies)
        .map_err(|error| End::failed(&text, error))?;
    say("ready")?;
    let met = peer.until(|| format!("a server of {text}"), |view| is_served(view, &text));
    met.await?;
    peer.hold(arguments.hold).await?;
    let what = || format!("an answer to a goal for {text}");
    let (id, answer) =
        peer.wait(what, client.async_send_goal(arguments.order)).await?.map_err(failed)?;
    if !answer.accepted {
        return say("rejected");
    }
    say("accepted")?;
    let work = async {
        let mut result = std::pin::pin!(client.async_request_result(id).fuse());
        let mut feedback = std::pin::pin!(client.feedback_stream(id));
        let mut is_canceled = false;
        loop {
            select_biased! {
                heard = feedback.select_next_some() => {
                    say(format_args!("feedback {:?}", heard.map_err(failed)?))?;
                    if arguments.cancel && !is_canceled {
                        is_canceled = true;
                        let answer = client.async_cancel_goal(id, Time::ZERO).await;
                        let answer = answer.map_err(failed)?;
                        let canceling = answer.goals_canceling.iter();
                        let own = canceling.filter(|it| it.goal_id == id).count();
                        say(format_args!("canceling {own} {:?}", answer.return_code))?;
                    }
                }
                result = result => {
                    let (status, sequence) = result.map_err(failed)?;
                    return say(format_args!("{status:?} {sequence:?}"));
                }
            }
        }
    };
    peer.wait(|| format!("the result of a goal for {text}"), work).await?
}
