//! Gives a document its types. Every mistake names its key, because each table and each list adds its own part of the key to the
//! mistakes of what it holds; and the key `name` of a table comes first, because the others' meaning depends on it.

use std::collections::VecDeque;

use elephan_units::{Mistake, refuse};
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

/// Reads a value of type `T` that stands at `key`.
pub(crate) fn typed<T: DeserializeOwned>(document: Value, key: &str) -> Result<T, Mistake> {
    T::deserialize(Reader(document)).map_err(|mistake| mistake.below(key))
}

struct Reader(Value);

impl<'de> Deserializer<'de> for Reader {
    type Error = Mistake;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(flag),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (None, Some(number)) => visitor.visit_i64(number),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => visitor.visit_string(text),
            Value::Array(items) => {
                let count = items.len();
                let mut items = Items { next: 0, left: items.into() };
                let read = visitor.visit_seq(&mut items)?;
                if items.left.is_empty() {
                    Ok(read)
                } else {
                    Err(refuse(format_args!("a list of {}", items.next), format_args!("a list of {count}")))
                }
            }
            Value::Object(table) => visitor.visit_map(Entries::of(table)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        match self.0 {
            Value::String(text) => visitor.visit_enum(text.into_deserializer()),
            Value::Object(table) if !table.is_empty() => {
                MapAccessDeserializer::new(Entries::of(table)).deserialize_enum(name, variants, visitor)
            }
            other => Err(refuse(format_args!("one of {}", variants.join(", ")), other)),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// The items of a list that are not read yet.
struct Items {
    next: usize,
    left: VecDeque<Value>,
}

impl<'de> SeqAccess<'de> for Items {
    type Error = Mistake;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Mistake> {
        let Some(value) = self.left.pop_front() else { return Ok(None) };
        let number = self.next;
        self.next += 1;
        seed.deserialize(Reader(value)).map(Some).map_err(|mistake| mistake.below(&number.to_string()))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
    }
}

/// The entries of a table that are not read yet, and the one whose key has been.
struct Entries {
    left: VecDeque<(String, Value)>,
    entered: Option<(String, Value)>,
}

impl Entries {
    fn of(mut table: Map<String, Value>) -> Self {
        let name = table.shift_remove_entry("name");
        Self { left: name.into_iter().chain(table).collect(), entered: None }
    }
}

impl<'de> MapAccess<'de> for Entries {
    type Error = Mistake;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Mistake> {
        self.entered = self.left.pop_front();
        let Some((key, _)) = &self.entered else { return Ok(None) };
        seed.deserialize(key.as_str().into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Mistake> {
        let (key, value) = self.entered.take().expect("a key is read before its value");
        seed.deserialize(Reader(value)).map_err(|mistake| mistake.below(&key))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        count: u32,
        pair: Option<(f64, f64)>,
    }

    fn mistake(document: Value) -> String {
        typed::<BTreeMap<String, Vec<Inner>>>(document, "top").unwrap_err().to_string()
    }

    #[test]
    fn a_mistake_names_its_key_and_needs_no_rust_to_be_understood() {
        for case in r#"
            { "a": [{ "count": 1 }, { "count": "x" }] } => top.a.1.count: expected a whole number from 0 to 4294967295, found "x"
            { "a": [{ "count": -1 }] } => top.a.0.count: expected a whole number from 0 to 4294967295, found -1
            { "a": [{ "count": 1.5 }] } => top.a.0.count: expected a whole number from 0 to 4294967295, found 1.5
            { "a": [{ "cuont": 1 }] } => top.a.0.cuont: expected one of the keys count, pair, found "cuont"
            { "a": [{}] } => top.a.0.count: expected a value, found nothing
            { "a": [3] } => top.a.0: expected a table, found 3
            { "a": 3 } => top.a: expected a list, found 3
            [] => top: expected a table, found a list
            { "a": [{ "count": 1, "pair": [1, true] }] } => top.a.0.pair.1: expected a number, found true
            { "a": [{ "count": 1, "pair": [1] }] } => top.a.0.pair: expected a list of 2, found a list of 1
            { "a": [{ "count": 1, "pair": [1, 2, 3] }] } => top.a.0.pair: expected a list of 2, found a list of 3
        "#
        .trim()
        .lines()
        {
            let (document, expected) = case.split_once(" => ").unwrap();
            assert_eq!(mistake(serde_json::from_str(document).unwrap()), expected);
        }
    }

    #[test]
    fn what_is_right_is_read() {
        let read: Vec<Inner> =
            typed(json!([{ "pair": [1, 2.5], "count": 7 }, { "count": 0, "pair": null }]), "").unwrap();
        assert_eq!(read, [Inner { count: 7, pair: Some((1.0, 2.5)) }, Inner { count: 0, pair: None }]);
    }
}
