//! Values that a file gives as a name, or as a table with the key `name` and parameters: `"red"`, `{ name =
//! "red", max_p = 0.02 }`.

use std::fmt;
use std::iter;
use std::marker::PhantomData;

use serde::de::value::MapDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use crate::mistake::refuse;

/// A value that is selected by its name.
pub trait Choice<'de>: Sized {
    /// What the name denotes, with its article: `a queue discipline`.
    const KIND: &'static str;

    /// Reads the parameters of `name` from the table that follows it.
    fn read<A: MapAccess<'de>>(name: &str, parameters: A) -> Result<Self, A::Error>;
}

/// Reads such a value. In a table the name comes first, which the reader of scenarios ensures.
pub fn read_choice<'de, T: Choice<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(NameVisitor(PhantomData))
}

struct NameVisitor<T>(PhantomData<T>);

impl<'de, T: Choice<'de>> Visitor<'de> for NameVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the name of {}, or a table with it", T::KIND)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<T, E> {
        T::read(name, MapDeserializer::new(iter::empty::<(&str, &str)>()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<T, A::Error> {
        match table.next_key::<String>()?.as_deref() {
            Some("name") => {
                let name: String = table.next_value()?;
                T::read(&name, table)
            }
            _ => Err(refuse(format_args!("the key name with the name of {}", T::KIND), "a table without it")),
        }
    }
}
