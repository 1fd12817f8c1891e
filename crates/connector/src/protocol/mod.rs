//! What connectors say: version 0 of the Airbyte protocol, one JSON object per line.
//!
//! [`line`](mod@line) says what a line is; [`scan`] is its fast way for records, [`message`] the types of
//! everything else. [`fields`] rewrites an object and leaves alone what it does not know, [`semantic`]
//! compares JSON by what it means, [`state`] reads states, [`catalog`] which streams there are.

pub mod catalog;
pub mod fields;
pub mod line;
pub mod message;
pub mod scan;
pub mod semantic;
pub mod state;
