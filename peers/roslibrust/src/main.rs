//! A client with roslibrust: publishes, subscribes, serves, calls, and asks rosapi. Says a line for each.

use std::error::Error;
use std::time::Duration;

use roslibrust_common::{GraphProvider, MessageDescriptor, RosMessageType, RosServiceType};
use roslibrust_rosbridge::ClientHandle;
use serde::{Deserialize, Serialize};

/// Cuts a hang. Nothing is expected to take any part of it.
const WATCHDOG: Duration = Duration::from_secs(60);

const MESSAGES: usize = 50;

/// A message, which roslibrust would generate from its definition.
macro_rules! message {
    ($name:ident, $ty:literal, { $($field:ident: $of:ty),* }) => {
        #[derive(Clone, Debug, Default, Deserialize, Serialize)]
        struct $name {
            $($field: $of,)*
        }

        impl RosMessageType for $name {
            // rosbridge wants to know no more than the name.
            const DESCRIPTION: MessageDescriptor =
                MessageDescriptor::new::<Self>($ty, "", "", "", &[0; 32]);
        }
    };
}

message!(Text, "std_msgs/String", { data: String });
message!(AddRequest, "example_interfaces/AddTwoIntsRequest", { a: i64, b: i64 });
message!(AddResponse, "example_interfaces/AddTwoIntsResponse", { sum: i64 });

/// A service, in the same way.
struct Add;

impl RosServiceType for Add {
    const ROS_SERVICE_NAME: &'static str = "example_interfaces/AddTwoInts";
    type Request = AddRequest;
    type Response = AddResponse;
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).ok_or("usage: roslibrust-peer PORT")?;
    tokio::time::timeout(WATCHDOG, speak(&port)).await?
}

async fn speak(port: &str) -> Result<(), Box<dyn Error>> {
    let client = ClientHandle::new(format!("ws://127.0.0.1:{port}")).await?;

    let subscriber = client.subscribe::<Text>("/chatter").await?;
    let publisher = client.advertise::<Text>("/chatter").await?;
    for number in 0..MESSAGES {
        publisher.publish(&Text { data: format!("hello {number} \u{1f980}") }).await?;
    }
    let mut heard = Vec::new();
    while heard.len() < MESSAGES {
        heard.push(subscriber.next().await.data);
    }
    println!("heard {} {}", heard[0], heard[MESSAGES - 1]);

    let add = |request: AddRequest| Ok(AddResponse { sum: request.a + request.b });
    let _server = client.advertise_service::<Add, _>("/add", add).await?;
    // Who asks too early is told that nobody serves, and asks again. So does whoever had no response: roslibrust 0.26 gives up what it
    // does with a message at the end of each 10 ms of its loop, and a request that came shortly before is then forgotten.
    let sum = loop {
        let asked = client.call_service::<Add>("/add", AddRequest { a: 2, b: 40 }).await;
        match asked.map_err(|error| error.to_string()) {
            Ok(response) => break response.sum,
            Err(why)
                if ["does not exist", "no response in time"].iter().any(|it| why.contains(it)) => {}
            Err(why) => return Err(why.into()),
        }
    };
    println!("sum {sum}");
    match client.call_service::<Add>("/nobody", AddRequest::default()).await {
        Ok(response) => println!("answered {response:?}"),
        Err(error) => println!("{error}"),
    }

    // These ask rosapi.
    let topics = client.list_topics().await?;
    let chatter = topics.iter().find(|it| it.name == "/chatter");
    println!("topic of {}", chatter.map_or("no type", |it| &it.type_name));
    let services = client.list_services().await?;
    let add = services.iter().find(|it| it.name == "/add");
    println!("service of {}", add.map_or("no type", |it| &it.type_name));
    Ok(())
}
