//! The library that Python loads. Because this test needs it, `cargo test` compiles it together with all else, and the Python tests of the
//! gate load what this compiles: one compilation for both.

use std::env;
use std::fs;

#[test]
fn it_has_the_function_by_which_python_initialises_it() {
    let tests = env::current_exe().expect("a test is a file");
    let library =
        tests.with_file_name(format!("{}_core{}", env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX));
    let bytes = fs::read(&library).unwrap_or_else(|error| panic!("{}: {error}", library.display()));
    assert!(bytes.windows(13).any(|text| text == b"PyInit__core\0"));
}
