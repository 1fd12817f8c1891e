//! Calls: of functions of the script, of methods, of what every script can see.

use serde_json::Value as Json;

use super::machine::{Machine, Outcome, Stop, Value, unsupported};
use super::tree::{Call, Member, Node};
use super::{coerce, global, method};

impl<'a> Machine<'a> {
    pub(super) fn call(&mut self, call: &Call) -> Outcome<Value<'a>> {
        if call.optional {
            return unsupported();
        }
        if let Node::Member(member) = &call.callee {
            return self.call_method(member, call);
        }
        let callee = self.value(&call.callee)?;
        let arguments = self.values(&call.arguments)?;
        self.invoke(&callee, arguments)
    }

    /// Calls a value.
    pub(super) fn invoke(
        &mut self,
        callee: &Value<'a>,
        arguments: Vec<Value<'a>>,
    ) -> Outcome<Value<'a>> {
        self.step()?;
        match callee {
            Value::Function(at) => self.call_closure(*at, arguments),
            Value::Global(global) => global::call(self, *global, &arguments),
            Value::Undefined
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Long(_)
            | Value::String(_)
            | Value::Given(_)
            | Value::List(_)
            | Value::Object(_) => unsupported(),
        }
    }

    fn call_method(&mut self, member: &Member, call: &Call) -> Outcome<Value<'a>> {
        let object = self.value(&member.object)?;
        if member.optional && object.is_nullish() {
            return Err(Stop::CutShort);
        }
        let key = self.key(&member.key)?;
        if object.is_nullish() {
            return self.get(&object, &key);
        }
        let arguments = self.values(&call.arguments)?;
        match &object {
            Value::String(text) => method::of_string(self, text, &key, &arguments),
            Value::List(_) | Value::Given(Json::Array(_)) => {
                method::of_list(self, &object, &key, &arguments)
            }
            Value::Object(_) | Value::Given(_) => match (self.own(&object, &key)?, &*key) {
                (Some(callee), _) => self.invoke(&callee, arguments),
                (None, "hasOwnProperty") => self.has_own(&object, &arguments),
                (None, _) => unsupported(),
            },
            Value::Global(global) => global::call_method(self, *global, &key, &arguments),
            Value::Number(_) | Value::Bool(_) if &*key == "toString" && arguments.is_empty() => {
                self.string(&object).map(Value::String)
            }
            Value::Undefined
            | Value::Null
            | Value::Number(_)
            | Value::Bool(_)
            | Value::Long(_)
            | Value::Function(_) => unsupported(),
        }
    }

    fn has_own(&mut self, object: &Value<'a>, arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
        let [name] = arguments else { return unsupported() };
        let name = self.string(name)?;
        Ok(Value::Bool(self.own(object, &name)?.is_some()))
    }

    /// A place in something of this length, as methods take it: from the end if negative.
    pub(super) fn place_in(
        &mut self,
        argument: Option<&Value<'a>>,
        length: usize,
        missing: usize,
    ) -> Outcome<usize> {
        let at = match argument {
            None | Some(Value::Undefined) => return Ok(missing),
            Some(value) => self.number(value)?.trunc(),
        };
        let end = u32::try_from(length).map_or(f64::INFINITY, f64::from);
        let at = if at < 0.0 { at + end } else { at };
        Ok(whole(at, length))
    }
}

/// A number as a place up to `most`; what is no number is the first one.
pub(super) fn whole(number: f64, most: usize) -> usize {
    let end = u32::try_from(most).map_or(f64::INFINITY, f64::from);
    if number.is_nan() {
        return 0;
    }
    // There is no other conversion; it is within `0..=most` by then.
    number.trunc().clamp(0.0, end) as usize
}

/// The first two arguments, undefined where there are fewer; none if there are more.
pub(super) fn two<'a>(arguments: &[Value<'a>]) -> Outcome<(Value<'a>, Value<'a>)> {
    match arguments {
        [] => Ok((Value::Undefined, Value::Undefined)),
        [first] => Ok((first.clone(), Value::Undefined)),
        [first, second] => Ok((first.clone(), second.clone())),
        _ => unsupported(),
    }
}

/// What a search says: a place, or -1.
pub(super) fn found<'a>(place: Option<usize>) -> Value<'a> {
    let place = place.and_then(|place| u32::try_from(place).ok());
    Value::Number(place.map_or(-1.0, f64::from))
}

/// Whether two values are the same for `includes`: NaN is itself.
pub(super) fn same_value(left: &Value<'_>, right: &Value<'_>) -> Outcome<bool> {
    if let (Value::Number(left), Value::Number(right)) = (left, right)
        && left.is_nan()
        && right.is_nan()
    {
        return Ok(true);
    }
    coerce::same(left, right)
}
