//! The cases. Each panics where the world it is given breaks the contract.

pub mod arrival;
pub mod connection;
pub mod fork;
pub mod history;
pub mod life;
pub mod loans;
pub mod random;
pub mod refusal;
pub mod reservation;
pub mod views;
pub mod waking;
