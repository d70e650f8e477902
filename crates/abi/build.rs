//! Compiles kernel/*.bpf.c for the host, with the adapter of `bpf:FILE` that gives each the C interface; and lists the files of
//! kernel/guest.

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
    let folder = variable("CARGO_MANIFEST_DIR");
    // Links to the folders of the repository, because a published crate has only what is in its own folder.
    let [kernel, foreign] = ["sources", "foreign"].map(|name| folder.join(name));
    let mut build = cc::Build::new();
    let interface = foreign.join("include");
    build
        .std("gnu11")
        .include(&kernel)
        .include(&interface)
        .warnings(true)
        .extra_warnings(true)
        .file("src/foreign.c")
        .file(foreign.join("bpf_kernel.c"));
    for source in files(&kernel) {
        let name = source.file_name().expect("a file").to_string_lossy().into_owned();
        let Some(name) = name.strip_suffix(".bpf.c") else { continue };
        // The file, and what makes it an algorithm of the C interface.
        let adapter = variable("OUT_DIR").join(format!("{name}.c"));
        let lines = [
            format!("#define ALGORITHM {name}"),
            format!("#define EXPORTED el_{name}_cc"),
            format!("#include \"{}\"", foreign.join("bpf.c").display()),
        ];
        std::fs::write(&adapter, lines.join("\n") + "\n").expect("OUT_DIR can be written");
        build.file(source).file(adapter);
    }
    build.compile("elephan_kernel_host");

    let source = |path: &PathBuf| {
        let [name, path] =
            [path.file_name().expect("a file"), path.as_os_str()].map(|text| text.to_string_lossy());
        format!("Source {{ name: {name:?}, text: include_str!({path:?}) }},\n")
    };
    let list: String = files(&kernel.join("guest")).iter().map(source).collect();
    std::fs::write(variable("OUT_DIR").join("guest.rs"), format!("&[\n{list}]"))
        .expect("OUT_DIR can be written");

    println!("cargo:rerun-if-changed={}", kernel.display());
    for path in [interface, foreign.join("bpf.c"), foreign.join("bpf_kernel.c")] {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    println!("cargo:rerun-if-changed=src/foreign.c");
}
