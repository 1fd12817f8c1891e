//! Types of the REST API and their JSON schemas, from one declaration.
//!
//! [`object!`] and [`names!`] declare a type for serde and its schema at once; [`Schema`] gives the
//! schema of a field by its type. So the document cannot say something else than the code does.

use std::fmt::Display;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use windlass_record::bound::Bounds;

use crate::words::DUE_MS_MAX;

/// A type with a schema.
pub(crate) trait Schema {
    /// Whether a request must carry a field of this type.
    const REQUIRED: bool = true;

    /// The schema where the type is used: for named types a reference.
    fn schema() -> Value;

    /// Puts the named types in use here into `components/schemas`.
    fn define(schemas: &mut Map<String, Value>) {
        let _ = schemas;
    }
}

/// Declares an object: `in` is read, unknown fields refused; `out` is written, every field present.
macro_rules! object {
    (@derive in $(#[$meta:meta])* $vis:vis struct $name:ident { $($fields:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        $vis struct $name { $($fields)* }
    };
    (@derive out $(#[$meta:meta])* $vis:vis struct $name:ident { $($fields:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, serde::Serialize)]
        $vis struct $name { $($fields)* }
    };
    (@required in $kind:ty) => { <$kind as $crate::rest::schema::Schema>::REQUIRED };
    (@required out $kind:ty) => { true };
    (
        $way:ident #[doc = $about:literal] $name:ident {
            $(#[doc = $words:literal] $(#[$meta:meta])* $field:ident: $kind:ty,)*
        }
    ) => {
        object! {
            @derive $way
            #[doc = $about]
            pub(crate) struct $name {
                $(#[doc = $words] $(#[$meta])* pub(crate) $field: $kind,)*
            }
        }

        impl $crate::rest::schema::Schema for $name {
            fn schema() -> serde_json::Value {
                $crate::rest::schema::reference(stringify!($name))
            }

            fn define(schemas: &mut serde_json::Map<String, serde_json::Value>) {
                use $crate::rest::schema::{Schema, described, field_name};
                if schemas.contains_key(stringify!($name)) {
                    return;
                }
                // Before its fields, so that a type may hold itself.
                schemas.insert(stringify!($name).to_owned(), serde_json::Value::Null);
                let mut properties = serde_json::Map::new();
                let mut required: Vec<&str> = Vec::new();
                $(
                    <$kind as Schema>::define(schemas);
                    let name = field_name(stringify!($field));
                    if object!(@required $way $kind) {
                        required.push(name);
                    }
                    let schema = described(<$kind as Schema>::schema(), $words);
                    properties.insert(name.to_owned(), schema);
                )*
                let whole = serde_json::json!({
                    "type": "object",
                    "description": $about.trim(),
                    "properties": properties,
                    "required": required,
                    "additionalProperties": false,
                });
                schemas.insert(stringify!($name).to_owned(), whole);
            }
        }
    };
}

/// Declares a closed list of names, each with the value it stands for.
macro_rules! names {
    (#[doc = $about:literal] $name:ident { $($variant:ident = $text:literal,)* }) => {
        #[doc = $about]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
        pub(crate) enum $name {
            $(#[serde(rename = $text)] #[doc = $text] $variant,)*
        }

        impl $crate::rest::schema::Schema for $name {
            fn schema() -> serde_json::Value {
                $crate::rest::schema::reference(stringify!($name))
            }

            fn define(schemas: &mut serde_json::Map<String, serde_json::Value>) {
                let names = [$($text),*];
                let whole = serde_json::json!({
                    "type": "string", "description": $about.trim(), "enum": names,
                });
                schemas.insert(stringify!($name).to_owned(), whole);
            }
        }
    };
}

pub(crate) use {names, object};

/// A reference to a named schema.
pub(crate) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// `type` is a word of Rust.
pub(crate) fn field_name(name: &'static str) -> &'static str {
    name.strip_prefix("r#").unwrap_or(name)
}

/// A schema with words beside it.
pub(crate) fn described(mut schema: Value, words: &str) -> Value {
    if let Value::Object(fields) = &mut schema {
        fields.insert("description".to_owned(), Value::from(words.trim()));
    }
    schema
}

impl<T: Schema> Schema for Option<T> {
    const REQUIRED: bool = false;

    fn schema() -> Value {
        json!({ "anyOf": [T::schema(), { "type": "null" }] })
    }

    fn define(schemas: &mut Map<String, Value>) {
        T::define(schemas);
    }
}

impl<T: Schema> Schema for Vec<T> {
    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }

    fn define(schemas: &mut Map<String, Value>) {
        T::define(schemas);
    }
}

impl Schema for bool {
    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
}

impl Schema for String {
    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

impl Schema for u32 {
    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
    }
}

impl Schema for i32 {
    fn schema() -> Value {
        json!({ "type": "integer", "minimum": i32::MIN, "maximum": i32::MAX })
    }
}

impl Schema for u64 {
    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX })
    }
}

/// A whole number. JSON has only one kind of number: `3.0` is 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub(crate) struct Whole<T>(pub(crate) T);

impl<T: Schema> Schema for Whole<T> {
    fn schema() -> Value {
        T::schema()
    }
}

impl<T: Default> Default for Whole<T> {
    fn default() -> Whole<T> {
        Whole(T::default())
    }
}

impl<'de, T: TryFrom<i128> + Schema> serde::Deserialize<'de> for Whole<T> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Whole<T>, D::Error> {
        let number = whole(from)?;
        T::try_from(number).map(Whole).map_err(|_| {
            let range = T::schema();
            outside(number, &range["minimum"], &range["maximum"])
        })
    }
}

/// A whole number of any size that the engine might want.
fn whole<'de, D: serde::Deserializer<'de>>(from: D) -> Result<i128, D::Error> {
    struct Visitor;

    impl serde::de::Visitor<'_> for Visitor {
        type Value = i128;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a whole number in its range")
        }

        fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<i128, E> {
            Ok(number.into())
        }

        fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<i128, E> {
            Ok(number.into())
        }

        fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<i128, E> {
            let unexpected = serde::de::Unexpected::Float(number);
            let whole = if number.fract() == 0.0 { format!("{number:.0}") } else { String::new() };
            whole.parse().map_err(|_| E::invalid_value(unexpected, &self))
        }
    }

    from.deserialize_any(Visitor)
}

fn outside<E: serde::de::Error>(number: i128, min: impl Display, max: impl Display) -> E {
    E::custom(format!("{number} is not between {min} and {max}"))
}

/// An object that must be written as one: serde would also take its fields as an array.
#[derive(Clone, Copy, Debug, serde::Serialize)]
#[serde(transparent)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: serde::Deserialize<'de>> serde::Deserialize<'de> for Object<T> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Object<T>, D::Error> {
        struct Visitor<T>(std::marker::PhantomData<T>);

        impl<'de, T: serde::Deserialize<'de>> serde::de::Visitor<'de> for Visitor<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                map: A,
            ) -> Result<Object<T>, A::Error> {
                T::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Object)
            }
        }

        from.deserialize_map(Visitor(std::marker::PhantomData))
    }
}

impl<T: Schema> Schema for Object<T> {
    const REQUIRED: bool = T::REQUIRED;

    fn schema() -> Value {
        T::schema()
    }

    fn define(schemas: &mut Map<String, Value>) {
        T::define(schemas);
    }
}

/// Any JSON value, kept byte for byte.
impl Schema for Box<RawValue> {
    fn schema() -> Value {
        json!({})
    }
}

/// Wraps a type for serde and gives it a schema of its own.
macro_rules! narrowed {
    (#[doc = $about:literal] $name:ident($kind:ty) = $schema:expr) => {
        #[doc = $about]
        #[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
        #[serde(transparent)]
        pub(crate) struct $name(pub(crate) $kind);

        impl Schema for $name {
            fn schema() -> Value {
                $schema
            }
        }
    };
}

narrowed! {
    /// A name that must be there: of a queue, a document, a limit.
    Name(String) =
        name_schema(1)
}

narrowed! {
    /// A name that may be empty, which is "none".
    MaybeName(String) =
        name_schema(0)
}

/// Bytes are what counts; a schema can only count characters.
fn name_schema(length_min: usize) -> Value {
    let length_max = Bounds::default().name_bytes_max;
    json!({
        "type": "string",
        "minLength": length_min,
        "maxLength": length_max,
        "pattern": "^[^\\u0000]*$",
    })
}

/// A whole number within limits: a request with another one is refused where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub(crate) struct Ranged<const MIN: u64, const MAX: u64>(pub(crate) u64);

impl<'de, const MIN: u64, const MAX: u64> serde::Deserialize<'de> for Ranged<MIN, MAX> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = whole(from)?;
        match u64::try_from(number) {
            Ok(number) if (MIN..=MAX).contains(&number) => Ok(Ranged(number)),
            _ => Err(outside(number, MIN, MAX)),
        }
    }
}

impl<const MIN: u64, const MAX: u64> Schema for Ranged<MIN, MAX> {
    fn schema() -> Value {
        json!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

/// The longest span of time, as the engine bounds it.
pub(crate) const DURATION_MS_MAX: u64 = 3_162_240_000_000;

/// A span of time in milliseconds, which may be empty.
pub(crate) type Millis = Ranged<0, DURATION_MS_MAX>;

/// A span of time in milliseconds, at least one.
pub(crate) type SomeMillis = Ranged<1, DURATION_MS_MAX>;

/// A time in milliseconds since 1970.
pub(crate) type Time = Ranged<0, DUE_MS_MAX>;

/// How often to try again.
pub(crate) type Retries = Ranged<0, 2_147_483_647>;

/// Any JSON value, or nothing. `null` is a value.
#[derive(Debug, Default)]
pub(crate) struct Payload(pub(crate) Option<Box<RawValue>>);

impl<'de> serde::Deserialize<'de> for Payload {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Payload, D::Error> {
        Box::<RawValue>::deserialize(from).map(|value| Payload(Some(value)))
    }
}

impl Schema for Payload {
    const REQUIRED: bool = false;

    fn schema() -> Value {
        json!({})
    }
}

/// A key: written as text, since JavaScript's numbers end at 2^53; read as text or number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) u64);

impl serde::Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        into.collect_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Key, D::Error> {
        struct Visitor;

        impl serde::de::Visitor<'_> for Visitor {
            type Value = Key;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a key: a whole number, or its digits as text")
            }

            fn visit_u64<E: serde::de::Error>(self, key: u64) -> Result<Key, E> {
                Ok(Key(key))
            }

            fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<Key, E> {
                parse_key(key)
                    .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(key), &self))
            }
        }

        from.deserialize_any(Visitor)
    }
}

/// Digits only: no sign, no space.
pub(crate) fn parse_key(text: &str) -> Option<Key> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok().map(Key) } else { None }
}

impl Schema for Key {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[0-9]{1,19}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_span_is_the_engines() {
        assert_eq!(DURATION_MS_MAX, Bounds::default().duration_ms_max);
    }

    #[test]
    fn whole_numbers_may_have_a_zero_fraction_and_nothing_else() {
        let read = |text| serde_json::from_str::<Whole<u32>>(text).ok().map(|Whole(number)| number);
        assert_eq!(read("7"), Some(7));
        assert_eq!(read("7.0"), Some(7));
        assert_eq!(read("7e2"), Some(700));
        for refused in ["7.5", "-1", "4294967296", "1e99", "\"7\"", "null", "[7]"] {
            assert_eq!(read(refused), None, "{refused}");
        }
    }

    #[test]
    fn an_object_is_not_an_array() {
        #[derive(serde::Deserialize)]
        struct One {
            #[allow(dead_code, reason = "read by serde")]
            number: u32,
        }
        assert!(serde_json::from_str::<Object<One>>("{\"number\":1}").is_ok());
        assert!(serde_json::from_str::<Object<One>>("[1]").is_err());
    }
}
