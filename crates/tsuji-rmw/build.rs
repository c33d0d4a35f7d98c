//! Builds what only C++ can say of C++: its strings and vectors.

fn main() {
    println!("cargo::rerun-if-changed=src/containers.cpp");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        // Quick in a debug build too: it stands for what the standard library does in a call.
        .opt_level(2)
        .flag("-fvisibility=hidden")
        .extra_warnings(true)
        .warnings_into_errors(true)
        .file("src/containers.cpp")
        .compile("tsuji_rmw_containers");
}
