//! Values as FEEL writes them: what `string(value)` gives.

use std::fmt::Write;

use super::temporal::text::{write_date, write_date_time, write_days, write_months, write_time};
use super::value::Value;

/// The text of a value; a string stands for itself, inside of others in quotes.
pub(crate) fn of(value: &Value) -> String {
    if let Some(own) = value.as_text() {
        return own.to_string();
    }
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(truth) => text.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => {
            write!(text, "{number}").expect("a string takes what is written to it");
        }
        Value::Text(own) => {
            text.push('"');
            text.push_str(own);
            text.push('"');
        }
        Value::List(list) => {
            text.push('[');
            for (at, item) in list.iter().enumerate() {
                text.push_str(if at > 0 { ", " } else { "" });
                write(item, text);
            }
            text.push(']');
        }
        Value::Context(context) => {
            text.push('{');
            for (at, (name, value)) in context.entries().iter().enumerate() {
                text.push_str(if at > 0 { ", " } else { "" });
                text.push_str(name);
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
        Value::Date(date) => write_date(*date, text),
        Value::Time(time) => write_time(time, text),
        Value::DateTime(date_time) => write_date_time(date_time, text),
        Value::DaysDuration(duration) => write_days(*duration, text),
        Value::YearsDuration(duration) => write_months(*duration, text),
        Value::Range(range) => {
            text.push(if range.start_included { '[' } else { '(' });
            range.start.iter().for_each(|start| write(start, text));
            text.push_str("..");
            range.end.iter().for_each(|end| write(end, text));
            text.push(if range.end_included { ']' } else { ')' });
        }
        Value::Function(function) => {
            write!(text, "{function:?}").expect("a string takes what is written to it");
        }
    }
}
