//! What an entity has to say so that it can be searched for; [`entity!`] says it.

use rusqlite::Row;

use crate::names::{
    FlowState, IncidentState, JobKind, JobState, ListenerEvent, SubscriptionKind,
    SubscriptionState, UserTaskState,
};

/// Something that can be searched for.
pub trait Entity: Sized + Send + 'static {
    /// Its fields.
    type Field: Field;
    /// Tables, joined. Aliases differ between entities, so that one can stand inside another.
    const FROM: &'static str;
    /// What holds for all of them.
    const WHERE: &'static str;
    /// Its own key.
    const KEY: &'static str;
    /// The key of its instance.
    const INSTANCE: &'static str;
    /// The key of its element.
    const ELEMENT: &'static str;
    /// What [`Entity::read`] reads, in its order.
    const COLUMNS: &'static [&'static str];
    /// Reads it from the first columns of a row.
    fn read(row: &Row<'_>) -> rusqlite::Result<Self>;
}

/// A field that can be tested and sorted by.
pub trait Field: Copy + Send + 'static {
    /// All of them.
    const ALL: &'static [Self];
    /// Its name in the API that it is of.
    fn name(self) -> &'static str;
    /// What values it has.
    fn kind(self) -> FieldKind;
    /// What it is in SQL.
    fn sql(self) -> &'static str;

    /// The field with this name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|field| field.name() == name)
    }
}

/// What values a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// Keys.
    Key,
    /// Keys that are asked for as Conductor's ids, which are text.
    Id,
    /// Text.
    Text,
    /// Whole numbers.
    Number,
    /// Milliseconds since the epoch.
    Time,
    /// Yes or no.
    Flag,
    /// A list of text, of which one member must pass.
    List,
}

/// Reads a column.
pub(super) trait Column: Sized {
    fn column(row: &Row<'_>, at: usize) -> rusqlite::Result<Self>;
}

impl Column for u64 {
    fn column(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
        Ok(row.get::<_, i64>(at)?.cast_unsigned())
    }
}

impl Column for Option<u64> {
    fn column(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<u64>> {
        Ok(row.get::<_, Option<i64>>(at)?.map(i64::cast_unsigned))
    }
}

impl Column for Vec<String> {
    fn column(row: &Row<'_>, at: usize) -> rusqlite::Result<Vec<String>> {
        let json: String = row.get(at)?;
        // It was written as a list of text.
        Ok(serde_json::from_str(&json).unwrap_or_default())
    }
}

/// Everything else is as SQLite has it.
macro_rules! plain {
    ($($type:ty)*) => {
        $(impl Column for $type {
            fn column(row: &Row<'_>, at: usize) -> rusqlite::Result<$type> {
                row.get(at)
            }
        })*
    };
}

plain! { String Option<String> bool u32 i32 i64 Option<u32> }
plain! { FlowState JobState JobKind Option<ListenerEvent> IncidentState UserTaskState }
plain! { SubscriptionState SubscriptionKind }

/// Makes an entity: what is read of it, and its fields.
macro_rules! entity {
    (
        $(#[$meta:meta])*
        $name:ident, $field:ident {
            from $from:literal,
            where $where:literal,
            key $key:literal,
            instance $instance:literal,
            element $element:literal,
        }
        rows { $($(#[$row_meta:meta])* $row:ident: $type:ty = $column:literal,)* }
        fields { $($(#[$field_meta:meta])* $variant:ident: $kind:ident = $word:literal, $sql:literal;)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$row_meta])* pub $row: $type,)*
        }

        #[doc = concat!("What [`", stringify!($name), "`] is filtered and sorted by.")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $field {
            $(
                #[doc = concat!("`", $word, "`")]
                $variant,
            )*
        }

        impl Entity for $name {
            type Field = $field;
            const FROM: &'static str = $from;
            const WHERE: &'static str = $where;
            const KEY: &'static str = $key;
            const INSTANCE: &'static str = $instance;
            const ELEMENT: &'static str = $element;
            const COLUMNS: &'static [&'static str] = &[$($column,)*];

            fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<$name> {
                let mut at = 0..;
                let mut next = || at.next().unwrap_or(0);
                Ok($name { $($row: Column::column(row, next())?,)* })
            }
        }

        impl Field for $field {
            const ALL: &'static [$field] = &[$($field::$variant,)*];

            fn name(self) -> &'static str {
                match self { $($field::$variant => $word,)* }
            }

            fn kind(self) -> FieldKind {
                match self { $($field::$variant => FieldKind::$kind,)* }
            }

            fn sql(self) -> &'static str {
                match self { $($field::$variant => $sql,)* }
            }
        }
    };
}

pub(super) use entity;
