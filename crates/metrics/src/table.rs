//! Tables of samples, and their columns: each is declared once, here in Rust, with its unit and meaning. Engines fill them row by
//! row; files, frames, the page and the documents take names, units and meanings from the declaration.

use serde::{Serialize, Serializer};

/// What a column is, wherever it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Its name. It ends with the unit where there is one: `srtt_s`, `goodput_bit_s`.
    pub name: &'static str,
    /// What a chart or a table calls it.
    pub title: &'static str,
    /// Its unit: `s`, `B`, `bit/s`, `segments`, `packets`; `1` for numbers, counts and shares.
    pub unit: &'static str,
    /// The type of its values.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// What it means.
    pub meaning: &'static str,
    /// Whether a page that watches a run is sent it.
    pub is_live: bool,
    /// Whether a value can be unknown: NaN, or the largest of a type of integers.
    pub is_nullable: bool,
}

/// The values of one type: of a column, of a column's type, or of a part of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfKind<F64, U64, U32, U8> {
    /// 64-bit floating point.
    F64(F64),
    /// 64-bit unsigned.
    U64(U64),
    /// 32-bit unsigned.
    U32(U32),
    /// 8-bit unsigned.
    U8(U8),
}

/// The type of a column's values.
pub type Kind = OfKind<(), (), (), ()>;
/// The values of a column.
pub type Values = OfKind<Vec<f64>, Vec<u64>, Vec<u32>, Vec<u8>>;
/// Some of the values of a column.
pub type Slice<'a> = OfKind<&'a [f64], &'a [u64], &'a [u32], &'a [u8]>;

impl Kind {
    /// The name of the type, as NumPy and Arrow call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::F64(()) => "float64",
            Self::U64(()) => "uint64",
            Self::U32(()) => "uint32",
            Self::U8(()) => "uint8",
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl Values {
    /// How many values there are.
    pub fn rows(&self) -> usize {
        match self {
            Self::F64(values) => values.len(),
            Self::U64(values) => values.len(),
            Self::U32(values) => values.len(),
            Self::U8(values) => values.len(),
        }
    }
}

/// A table of samples.
pub trait Table: Default {
    /// The name of its file and its frame.
    const NAME: &'static str;
    /// Its columns, in their order.
    const COLUMNS: &'static [Column];

    /// How many rows it has.
    fn rows(&self) -> usize;
    /// The rows of each column from `first` on.
    fn since(&self, first: usize) -> impl Iterator<Item = (&'static Column, Slice<'_>)>;
    /// All columns, handed over.
    fn into_columns(self) -> impl Iterator<Item = (&'static Column, Values)>;
}

/// A type that the values of a column may have.
pub trait Cell: Sized {
    /// The type's name.
    const KIND: Kind;
    /// A whole column.
    fn values(column: Vec<Self>) -> Values;
    /// A part of a column.
    fn slice(column: &[Self]) -> Slice<'_>;
    /// Whether values are the same to the bit, and so unknown ones.
    fn is_same(&self, other: &Self) -> bool;
}

/// Whether columns are the same to the bit, and unknown in the same rows.
pub(crate) fn are_same<T: Cell>(one: &[T], other: &[T]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| a.is_same(b))
}

macro_rules! cell {
    ($($type:ty => $variant:ident, $same:expr);+) => { $(
        impl Cell for $type {
            const KIND: Kind = Kind::$variant(());
            fn values(column: Vec<Self>) -> Values {
                Values::$variant(column)
            }
            fn slice(column: &[Self]) -> Slice<'_> {
                Slice::$variant(column)
            }
            fn is_same(&self, other: &Self) -> bool {
                let same: fn(&Self, &Self) -> bool = $same;
                same(self, other)
            }
        }
    )+ };
}
cell!(f64 => F64, |a, b| a.to_bits() == b.to_bits(); u64 => U64, PartialEq::eq; u32 => U32, PartialEq::eq; u8 => U8, PartialEq::eq);

/// Declares a table: a struct of columns, a struct of one row, and the description of each column.
///
/// A column is `name: type, "unit", "title";` after its meaning; `live` at its end sends it to a page that watches a run. Values of
/// `type | null` can be unknown.
macro_rules! table {
    (
        $(#[doc = $doc:literal])+
        pub struct $table:ident of $row:ident = $name:literal {
            $( $(#[doc = $meaning:literal])+ $column:ident : $type:ty $(| $null:ident)?, $unit:literal, $title:literal $(, $live:ident)? ; )+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
        pub struct $table { $( $(#[doc = $meaning])+ pub $column: Vec<$type>, )+ }

        impl PartialEq for $table {
            fn eq(&self, other: &Self) -> bool {
                $( $crate::table::are_same(&self.$column, &other.$column) )&&+
            }
        }

        #[doc = concat!("A row of [`", stringify!($table), "`].")]
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $row { $( $(#[doc = $meaning])+ pub $column: $type, )+ }

        impl $table {
            /// An empty table with room for so many rows: memory that is not written to costs nothing, and columns that grow are copied.
            pub fn with_capacity(rows: usize) -> Self {
                Self { $( $column: Vec::with_capacity(rows), )+ }
            }

            /// Adds a row.
            pub fn push(&mut self, row: $row) {
                $( self.$column.push(row.$column); )+
            }

            /// Adds the rows of another table from `first` on.
            pub fn append(&mut self, other: &Self, first: usize) {
                $( self.$column.extend_from_slice(&other.$column[first..]); )+
            }

            /// Removes all rows, and keeps their memory.
            pub fn clear(&mut self) {
                $( self.$column.clear(); )+
            }
        }

        impl $crate::table::Table for $table {
            const NAME: &'static str = $name;
            const COLUMNS: &'static [$crate::table::Column] = &[ $( $crate::table::Column {
                name: stringify!($column),
                title: $title,
                unit: $unit,
                kind: <$type as $crate::table::Cell>::KIND,
                meaning: concat!($($meaning),+).trim_ascii(),
                is_live: false $( || stringify!($live).len() > 0 )?,
                is_nullable: false $( || stringify!($null).len() > 0 )?,
            }, )+ ];

            fn rows(&self) -> usize {
                [ $( self.$column.len(), )+ ][0]
            }

            fn since(&self, first: usize) -> impl Iterator<Item = (&'static $crate::table::Column, $crate::table::Slice<'_>)> {
                Self::COLUMNS.iter().zip([ $( $crate::table::Cell::slice(&self.$column[first..]), )+ ])
            }

            fn into_columns(self) -> impl Iterator<Item = (&'static $crate::table::Column, $crate::table::Values)> {
                Self::COLUMNS.iter().zip([ $( $crate::table::Cell::values(self.$column), )+ ])
            }
        }
    };
}
pub(crate) use table;
