//! The links and routes of a plan while it grows, and what is wrong so far.

use std::collections::BTreeMap;

use elephan_net::LinkConfig;

use crate::error::Mistake;
use crate::plan::Link;

/// The links and routes of a plan while it grows.
#[derive(Default)]
pub(crate) struct Network {
    pub links: Vec<Link>,
    pub routes: Vec<Vec<u32>>,
    known_routes: BTreeMap<Vec<u32>, u32>,
    pub mistakes: Vec<Mistake>,
}

impl Network {
    pub fn wrong(
        &mut self,
        key: impl Into<String>,
        expected: impl std::fmt::Display,
        found: impl std::fmt::Display,
    ) {
        self.mistakes.push(Mistake::new(key, expected, found));
    }

    /// Takes note of what is wrong with a value.
    pub fn note<T>(&mut self, value: Result<T, Mistake>) -> Option<T> {
        value.map_err(|mistake| self.mistakes.push(mistake)).ok()
    }

    /// The same, where several flows may have it in common.
    pub fn note_once<T>(&mut self, value: Result<T, Mistake>) -> Option<T> {
        match value {
            Ok(value) => Some(value),
            Err(mistake) => {
                if !self.mistakes.contains(&mistake) {
                    self.mistakes.push(mistake);
                }
                None
            }
        }
    }

    pub fn link(&mut self, name: impl Into<String>, config: LinkConfig) -> u32 {
        self.links.push(Link { name: name.into(), config });
        self.links.len() as u32 - 1
    }

    /// The names of the links, the first twenty, as an error shows them.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.links.iter().map(|link| link.name.as_str()).take(20).collect();
        names.join(", ")
    }

    pub fn route(&mut self, links: Vec<u32>) -> u32 {
        let next = self.routes.len() as u32;
        let number = *self.known_routes.entry(links.clone()).or_insert(next);
        if number == next {
            self.routes.push(links);
        }
        number
    }
}
