//! Compiles kernel/*.bpf.c for the host, together with the few kernel functions that they call.

fn main() {
    let kernel = std::path::PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("set by Cargo"))
        .join("../../kernel");
    let mut build = cc::Build::new();
    build.std("gnu11").include(&kernel).warnings(true).extra_warnings(true).file("src/host.c");
    let mut sources: Vec<_> = std::fs::read_dir(&kernel)
        .expect("kernel/: expected a folder of eBPF sources")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.to_string_lossy().ends_with(".bpf.c"))
        .collect();
    sources.sort();
    build.files(sources).compile("elephan_kernel_host");
    println!("cargo:rerun-if-changed={}", kernel.display());
    println!("cargo:rerun-if-changed=src/host.c");
}
