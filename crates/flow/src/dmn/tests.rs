//! Tests of decisions: refused documents, tables, boxed expressions, whole models, random ones.

mod boxed;
mod model;
mod mutation;
mod parse;
mod support;
mod table;
