//! Launch files that are not in XML, which ROS 2 has too.

use std::path::Path;

/// The language of a launch file that is not XML, as its name or its text shows.
pub(super) fn language(path: &Path, bytes: &[u8]) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let start: String = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]).into_owned();
    let text = start.trim_start_matches('\u{feff}').trim_start();
    // What begins as XML is read as XML, whatever its name.
    if text.starts_with('<') {
        return None;
    }
    let has_line = |beginnings: &[&str]| {
        text.lines().any(|line| beginnings.iter().any(|it| line.starts_with(it)))
    };
    let is_python = name.ends_with(".py")
        || text.starts_with("#!") && text.lines().next().is_some_and(|it| it.contains("python"))
        || has_line(&["import ", "from launch", "def generate_launch_description"]);
    if is_python {
        return Some("Python");
    }
    let is_yaml = [".yaml", ".yml"].iter().any(|it| name.ends_with(it)) || has_line(&["launch:"]);
    is_yaml.then_some("YAML")
}

/// What is said of such a file.
pub(super) fn problem(language: &str) -> String {
    format!(
        "is a launch file in {language}, and only those in XML are supported; \
         write it in XML (the page of the manual about launch files says what there is), or start it by ros2 launch"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_show_in_names_and_texts() {
        for (name, text, expect) in [
            ("a.launch.py", "", Some("Python")),
            ("a.py", "x = 1", Some("Python")),
            ("a", "#!/usr/bin/env python3\n", Some("Python")),
            ("a.launch", "# a\nfrom launch import LaunchDescription\n", Some("Python")),
            ("a", "import os\n\ndef generate_launch_description():\n", Some("Python")),
            ("a.launch.yaml", "", Some("YAML")),
            ("A.YML", "launch: []", Some("YAML")),
            ("a", "---\nlaunch:\n- node:\n", Some("YAML")),
            ("a.launch.xml", "<launch/>", None),
            ("a.launch.xml", "launch", None),
            ("a.yaml", "\u{feff} <launch/>", None),
            ("a", "", None),
        ] {
            assert_eq!(language(Path::new(name), text.as_bytes()), expect, "{name} {text:?}");
        }
    }
}
