//! The ways in and out: JSON as a value of the language, and back.

use std::rc::Rc;

use serde_json::{Map, Number, Value as Json};

use super::ScriptError;
use super::machine::{Machine, Outcome, Stop, Value, unsupported};

/// How many lists and objects of a result may lie inside one another; JSON is read no deeper.
const DEPTH_MAX: usize = 100;

impl<'a> Machine<'a> {
    /// The result of a script, for those outside.
    pub(super) fn export(&mut self, value: &Value<'a>) -> Result<Json, ScriptError> {
        match self.exported(value, DEPTH_MAX) {
            Ok(json) => Ok(json.unwrap_or_default()),
            Err(Stop::Error(error)) => Err(error),
            Err(Stop::CutShort) => Err(ScriptError::Unsupported),
        }
    }

    /// None if there is no value, which an object leaves out.
    fn exported(&mut self, value: &Value<'a>, depth_left: usize) -> Outcome<Option<Json>> {
        let Some(depth_left) = depth_left.checked_sub(1) else { return unsupported() };
        self.step()?;
        Ok(Some(match value {
            Value::Undefined => return Ok(None),
            Value::Null => Json::Null,
            Value::Bool(truth) => Json::Bool(*truth),
            Value::Number(number) => json_number(*number),
            Value::Long(json) => (*json).clone(),
            Value::String(text) => {
                self.build(text.len())?;
                Json::String(text.to_string())
            }
            Value::Given(json) => {
                self.weigh(json)?;
                (*json).clone()
            }
            Value::List(_) => {
                let items = self.items(value)?;
                self.build(items.len() * 32)?;
                let items = items
                    .iter()
                    .map(|item| self.exported(item, depth_left).map(Option::unwrap_or_default));
                Json::Array(items.collect::<Outcome<_>>()?)
            }
            Value::Object(_) => {
                let mut fields = Map::new();
                for name in self.enumerable(value)? {
                    let Some(field) = self.own(value, &name)? else { continue };
                    if let Some(field) = self.exported(&field, depth_left)? {
                        fields.insert(name.to_string(), field);
                    }
                }
                Json::Object(fields)
            }
            Value::Function(_) | Value::Global(_) => return unsupported(),
        }))
    }

    fn weigh(&mut self, json: &Json) -> Outcome<()> {
        self.step()?;
        self.build(32)?;
        match json {
            Json::Null | Json::Bool(_) | Json::Number(_) => Ok(()),
            Json::String(text) => self.build(text.len()),
            Json::Array(items) => items.iter().try_for_each(|item| self.weigh(item)),
            Json::Object(fields) => fields.iter().try_for_each(|(name, field)| {
                self.build(name.len())?;
                self.weigh(field)
            }),
        }
    }

    /// `JSON.stringify` with one argument.
    pub(super) fn stringify(&mut self, value: &Value<'a>) -> Outcome<Value<'a>> {
        let mut text = String::new();
        if self.write(value, &mut text)? { self.text(&text) } else { Ok(Value::Undefined) }
    }

    /// Says whether there was a value to write.
    fn write(&mut self, value: &Value<'a>, text: &mut String) -> Outcome<bool> {
        self.step()?;
        match value {
            Value::Undefined => return Ok(false),
            Value::Null => text.push_str("null"),
            Value::Bool(truth) => text.push_str(if *truth { "true" } else { "false" }),
            Value::Number(number) if !number.is_finite() => text.push_str("null"),
            Value::Number(number) => text.push_str(&super::coerce::number_text(*number)),
            Value::String(string) => write_text(string, text),
            Value::List(_) | Value::Given(Json::Array(_)) => {
                text.push('[');
                for (position, item) in self.items(value)?.iter().enumerate() {
                    if position > 0 {
                        text.push(',');
                    }
                    if !self.deeper(|machine| machine.write(item, text))? {
                        text.push_str("null");
                    }
                }
                text.push(']');
            }
            Value::Object(_) | Value::Given(_) => self.write_object(value, text)?,
            Value::Long(_) | Value::Function(_) | Value::Global(_) => return unsupported(),
        }
        self.build(16)?;
        if text.len() > 1 << 24 { Err(ScriptError::Budget.into()) } else { Ok(true) }
    }

    fn write_object(&mut self, object: &Value<'a>, text: &mut String) -> Outcome<()> {
        text.push('{');
        let mut first = true;
        for name in self.enumerable(object)? {
            // It would say itself how it is written.
            if &*name == "toJSON" {
                return unsupported();
            }
            let Some(field) = self.own(object, &name)? else { continue };
            let start = text.len();
            if !first {
                text.push(',');
            }
            write_text(&name, text);
            text.push(':');
            if self.deeper(|machine| machine.write(&field, text))? {
                first = false;
            } else {
                text.truncate(start);
            }
        }
        text.push('}');
        Ok(())
    }

    /// `JSON.parse`; what is wrong with a text, a real engine says in its words.
    pub(super) fn parse_json(&mut self, text: &str) -> Outcome<Value<'a>> {
        self.steps(text.len() / 32)?;
        self.build(text.len() * 2)?;
        match serde_json::from_str(text) {
            Ok(json) => self.import(&json),
            Err(_) => unsupported(),
        }
    }

    fn import(&mut self, json: &Json) -> Outcome<Value<'a>> {
        self.step()?;
        Ok(match json {
            Json::Null => Value::Null,
            Json::Bool(truth) => Value::Bool(*truth),
            Json::Number(number) => match number.as_f64() {
                Some(number) => Value::Number(number),
                None => return unsupported(),
            },
            Json::String(text) => Value::String(Rc::from(text.as_str())),
            Json::Array(items) => {
                let items = items.iter().map(|item| self.import(item));
                let items = items.collect::<Outcome<_>>()?;
                self.list(items)?
            }
            Json::Object(fields) => {
                let object = self.object()?;
                for (name, field) in fields {
                    let field = self.import(field)?;
                    self.set_field(object, name, field)?;
                }
                Value::Object(object)
            }
        })
    }
}

/// Whole numbers stay whole; what is no number is null.
fn json_number(number: f64) -> Json {
    /// The first whole number that is too large.
    const WHOLE_END: f64 = 9_223_372_036_854_775_808.0;
    if number.fract() == 0.0 && (-WHOLE_END..WHOLE_END).contains(&number) {
        // There is no other conversion; it is a whole number within the bounds.
        return Json::from(number as i64);
    }
    Number::from_f64(number).map_or(Json::Null, Json::Number)
}

fn write_text(string: &str, text: &mut String) {
    // The same characters are escaped, in the same way.
    text.push_str(&Json::from(string).to_string());
}
