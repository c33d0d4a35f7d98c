//! Generates Rust types of the messages, services and actions in `interfaces/my_robot_msgs`.

fn main() -> Result<(), tsuji_build::Error> {
    tsuji_build::Interfaces::new().folder("interfaces/my_robot_msgs").generate()
}
