//! Values of a fuzz test that proptest's seed fixes.

use std::fmt::Debug;

use bolero::TypeGenerator;
use bolero::generator::bolero_generator::driver::{ByteSliceDriver, Options};
use proptest::collection::vec;
use proptest::prelude::*;

/// Drawn bytes of a value. No generator of these tests takes more, as a list has at most 64 elements.
const BYTES: usize = 8192;

/// A value that bolero's generator of its type makes of drawn bytes.
pub fn drawn<T: TypeGenerator + Debug>() -> impl Strategy<Value = T> {
    let options = Options::default().with_max_len(BYTES);
    vec(any::<u8>(), BYTES)
        .prop_filter_map("no value", move |bytes| T::generate(&mut ByteSliceDriver::new(&bytes, &options)))
}
