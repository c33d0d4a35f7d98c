//! Declarations of ROS 2's C structures, written by hand for one distribution.

pub mod rcutils;
pub mod rmw;
pub mod rosidl;

#[cfg(test)]
mod layout;
