//! Tests of FEEL: what expressions give, and what no text and no budget may do.

mod bounds;
mod support;
mod values;
