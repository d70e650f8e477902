//! Compiles kernel/*.bpf.c for the host, together with the few kernel functions that they call; and lists the files of
//! kernel/uml.

use std::path::{Path, PathBuf};

/// The files of a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

fn main() {
    let variable = |name| PathBuf::from(std::env::var(name).expect("set by Cargo"));
    let kernel = variable("CARGO_MANIFEST_DIR").join("../../kernel");
    let mut build = cc::Build::new();
    let interface = kernel.join("../python/elephan/foreign/include");
    build
        .std("gnu11")
        .include(&kernel)
        .include(&interface)
        .warnings(true)
        .extra_warnings(true)
        .files(["src/host.c", "src/foreign.c"]);
    let sources = files(&kernel).into_iter().filter(|path| path.to_string_lossy().ends_with(".bpf.c"));
    build.files(sources).compile("elephan_kernel_host");

    let source = |path: &PathBuf| {
        let [name, path] =
            [path.file_name().expect("a file"), path.as_os_str()].map(|text| text.to_string_lossy());
        format!("Source {{ name: {name:?}, text: include_str!({path:?}) }},\n")
    };
    let list: String = files(&kernel.join("uml")).iter().map(source).collect();
    std::fs::write(variable("OUT_DIR").join("guest.rs"), format!("&[\n{list}]"))
        .expect("OUT_DIR can be written");

    println!("cargo:rerun-if-changed={}", kernel.display());
    println!("cargo:rerun-if-changed={}", interface.display());
    println!("cargo:rerun-if-changed=src/host.c");
    println!("cargo:rerun-if-changed=src/foreign.c");
}
