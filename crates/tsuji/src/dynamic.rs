//! Messages whose type is known at run time only: their definitions, and their values field by field.
//!
//! They are carried by the raw endpoints, such as [`RawPublisher`](crate::RawPublisher), and by
//! [dynamic actions](crate::action::DynamicAction).
//!
//! ```no_run
//! use tsuji::dynamic::{DynamicMessage, TypeSet, Value};
//! use tsuji::interfaces::Shipped;
//! use tsuji::{Context, Qos, RawType};
//!
//! let ty = TypeSet::new(Shipped).load("std_msgs/msg/String")?;
//! let mut message = DynamicMessage::new(ty.clone());
//! message.set("data", Value::Text("hello".into()))?;
//! let of = RawType::new(ty.name().to_string()).hash(ty.hash());
//! let node = Context::new()?.node("talker")?;
//! node.create_raw_publisher("chatter", of, Qos::DEFAULT)?.publish_bytes(&message.encode()?)?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

pub use tsuji_msg::{
    ActionDescription, DynamicMessage, List, Resolver, ServiceDescription, TypeDescription,
    TypeSet, Value, ValueError, load_full_text,
};
