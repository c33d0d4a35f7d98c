//! The Python package: thin classes over the raw node API, and messages whose fields are read where they lie.
#![warn(missing_docs)]

use pyo3::prelude::*;

mod action;
mod error;
mod event;
mod loan;
mod loop_wakers;
mod message;
mod node;
mod parameter;
mod polled;
mod qos;
mod read;
mod recording;
mod service;
mod topic;
mod types;
mod view;
mod waiting;
mod write;

#[pymodule]
fn _tsuji(module: &Bound<'_, PyModule>) -> PyResult<()> {
    error::add_to(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<message::Message>()?;
    module.add_class::<view::Array>()?;
    module.add_class::<qos::Qos>()?;
    module.add_class::<node::Node>()?;
    module.add_class::<node::Timer>()?;
    module.add_class::<topic::Publisher>()?;
    module.add_class::<topic::Subscription>()?;
    module.add_class::<service::Service>()?;
    module.add_class::<service::Client>()?;
    module.add_class::<action::ActionClient>()?;
    module.add_class::<action::ActionServer>()?;
    module.add_class::<action::Goal>()?;
    module.add_class::<action::ServerGoal>()?;
    module.add_class::<parameter::OnSet>()?;
    module.add_class::<parameter::RemoteParameters>()?;
    module.add_class::<recording::Recording>()?;
    module.add_class::<recording::RecordingWriter>()?;
    module.add_class::<recording::Messages>()?;
    module.add_class::<recording::RecordedMessage>()?;
    module.add_class::<loan::Loan>()?;
    module.add_class::<loop_wakers::PyLoopWakers>()?;
    module.add_class::<polled::GuardCondition>()?;
    module.add_class::<polled::WaitList>()?;
    module.add_class::<polled::PolledService>()?;
    module.add_class::<polled::PolledActionServer>()?;
    module.add_function(wrap_pyfunction!(types::load, module)?)?;
    module.add_function(wrap_pyfunction!(view::use_plain_sequences, module)?)?;
    module.add_function(wrap_pyfunction!(types::load_text, module)?)?;
    module.add_function(wrap_pyfunction!(types::load_service, module)?)?;
    module.add_function(wrap_pyfunction!(action::load_action, module)?)?;
    module.add_function(wrap_pyfunction!(types::interface_names, module)?)?;
    module.add_function(wrap_pyfunction!(types::add_interface_folder, module)?)?;
    module.add_function(wrap_pyfunction!(message::info, module)?)?;
    module.add_function(wrap_pyfunction!(recording::open_recording, module)?)?;
    module.add_function(wrap_pyfunction!(node::shut_down_all, module)?)?;
    Ok(())
}
