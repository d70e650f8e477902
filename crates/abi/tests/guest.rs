//! The algorithms as a guest kernel compiles them, compared with those of the host.
//!
//! A few headers of the kernel are replaced by `tests/guest`, so that no kernel is needed.

use std::path::Path;
use std::process::Command;

fn run(command: &mut Command) {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = [done.stdout, done.stderr].concat();
    assert!(done.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&text));
}

#[test]
fn a_guest_computes_as_the_host_does() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kernel = here.join("../../kernel");
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guest");
    let _ = std::fs::remove_dir_all(&made);
    std::fs::create_dir_all(&made).expect("a folder for the objects");
    let compiler = || {
        let mut command = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        command.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"]);
        command.current_dir(&made).arg("-I").arg(&kernel).arg("-I").arg(here.join("tests/guest"));
        command
    };
    let sources = || elephan_abi::ALL.iter().map(|entry| kernel.join(entry.source));
    // Both modes have values of the current connection.
    let mut guest = compiler();
    guest.args(["-D__KERNEL__", "-Del_values=guest_values", "-c", "-I"]).arg(kernel.join("guest"));
    run(guest.args(sources()).arg(kernel.join("guest/algorithms.c")).arg(here.join("tests/guest/guest.c")));
    let objects: Vec<_> = std::fs::read_dir(&made)
        .expect("the folder of the objects")
        .map(|entry| entry.expect("an object").path())
        .collect();
    let names = elephan_abi::ALL.iter().map(|entry| format!("X({})", &entry.registered["el_".len()..]));
    let mut host = compiler();
    host.arg(format!("-DALGORITHMS={}", names.collect::<Vec<_>>().join(" ")));
    host.args(sources())
        .arg(here.join("../../python/elephan/foreign/bpf_kernel.c"))
        .arg(here.join("tests/guest/compare.c"));
    run(host.args(objects).args(["-o", "compare"]));
    run(&mut Command::new(made.join("compare")));
}
