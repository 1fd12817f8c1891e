//! Methods of strings and lists.

mod list;
mod string;

pub(super) use list::of_list;
pub(super) use string::of_string;
