//! What is expected where a name is not known.

use std::fmt;

/// Similarity of two names from which one is taken for a misspelling of the other (Jaro and Winkler; 1 is the same). A letter
/// that is missing, or that changed places with its neighbour, gives 0.9 and more.
const NEAR: f64 = 0.85;
/// A list of so many names is shown as a whole, also to somebody who meant one of them.
const SHORT: usize = 6;
/// Near names that are shown.
const SHOWN: usize = 3;

/// The expected names in words: all of them, or, where `found` is near to some of many, these: `htcp, or another of 57`.
pub struct OneOf<'a, N: AsRef<str>> {
    /// The names.
    pub known: &'a [N],
    /// What was found instead.
    pub found: &'a str,
}

impl<N: AsRef<str>> fmt::Display for OneOf<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = || self.known.iter().map(AsRef::as_ref);
        let mut near: Vec<(f64, &str)> =
            names().map(|name| (strsim::jaro_winkler(name, self.found), name)).collect();
        near.retain(|&(similar, _)| similar >= NEAR);
        // The order of the list decides between equals.
        near.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        if near.is_empty() || self.known.len() <= SHORT {
            return write!(f, "one of {}", names().collect::<Vec<_>>().join(", "));
        }
        let shown: Vec<&str> = near.iter().map(|&(_, name)| name).take(SHOWN).collect();
        write!(f, "{}, or another of {}", shown.join(", "), self.known.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 8] = ["reno", "hstcp", "htcp", "bic", "cubic", "fast", "ltcp", "bbr"];

    fn expected(known: &[&str], found: &str) -> String {
        OneOf { known, found }.to_string()
    }

    #[test]
    fn a_misspelt_name_gives_the_near_ones() {
        assert_eq!(expected(&NAMES, "htpc"), "htcp, or another of 8");
        assert_eq!(expected(&NAMES, "cubc"), "cubic, or another of 8");
        assert_eq!(expected(&NAMES, "hstpc"), "hstcp, or another of 8");
    }

    #[test]
    fn what_is_near_to_none_and_a_short_list_give_all() {
        assert_eq!(expected(&NAMES, "xyz"), "one of reno, hstcp, htcp, bic, cubic, fast, ltcp, bbr");
        assert_eq!(expected(&NAMES[..3], "htpc"), "one of reno, hstcp, htcp");
        assert_eq!(expected(&[], "htpc"), "one of ");
    }
}
