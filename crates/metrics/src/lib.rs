//! What a run is worth: every metric defined once, in one pass, with bounded memory.
