//! Awaits what the talker says. Any runtime will do; here ten lines are the runtime.
//!
//! ```sh
//! cargo run --example talker
//! cargo run --example async_listener
//! ```
//!
//! Ctrl-C ends it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to its user")]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::thread::{self, Thread};

use tsuji::interfaces::std_msgs::msg::String as Text;
use tsuji::{Context, ErrorKind, Qos, Subscription};

fn main() -> tsuji::Result<()> {
    let context = Context::builder().args(std::env::args().skip(1)).only_ros_args().build()?;
    context.shutdown_on_signals()?;
    let node = context.node("listener")?;
    let subscription = node.create_polled_subscription::<Text>("chatter", Qos::DEFAULT)?;
    match block_on(listen(&subscription)) {
        Err(error) if error.kind() == ErrorKind::Closed => Ok(()),
        ended => ended,
    }
}

async fn listen(subscription: &Subscription<Text>) -> tsuji::Result<()> {
    loop {
        let received = subscription.recv().await?;
        println!("I heard: '{}'", received.view().data);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}
