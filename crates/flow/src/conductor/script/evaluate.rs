//! Expressions: a walk over the tree, every step of it counted.

use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::Value as Json;

use super::ScriptError;
use super::coerce::{self, same};
use super::machine::{Machine, Outcome, Stop, Value, unsupported};
use super::tree::{Binary, Field, Item, Key, Member, Node, Step, Target, Unary};

impl<'a> Machine<'a> {
    pub(super) fn value(&mut self, node: &Node) -> Outcome<Value<'a>> {
        self.step()?;
        match node {
            Node::Undefined => Ok(Value::Undefined),
            Node::Null => Ok(Value::Null),
            Node::Bool(truth) => Ok(Value::Bool(*truth)),
            Node::Number(number) => Ok(Value::Number(*number)),
            Node::String(text) => Ok(Value::String(Rc::clone(text))),
            Node::Name(name) => self.name(name),
            Node::Function(function) => self.closure(function),
            Node::Template(..)
            | Node::List(_)
            | Node::Object(_)
            | Node::Member(_)
            | Node::Call(_)
            | Node::Chain(_)
            | Node::Unary(..)
            | Node::Binary(..)
            | Node::And(_)
            | Node::Or(_)
            | Node::Coalesce(_)
            | Node::Conditional(_)
            | Node::Assign(..)
            | Node::Step(_)
            | Node::Sequence(_) => self.deeper(|machine| machine.inner(node)),
        }
    }

    fn inner(&mut self, node: &Node) -> Outcome<Value<'a>> {
        match node {
            Node::Undefined
            | Node::Null
            | Node::Bool(_)
            | Node::Number(_)
            | Node::String(_)
            | Node::Name(_)
            | Node::Function(_) => unsupported(),
            Node::Template(texts, nodes) => self.template(texts, nodes),
            Node::List(items) => {
                let items = self.values(items)?;
                self.list(items)
            }
            Node::Object(fields) => self.fields(fields),
            Node::Member(member) => self.member(member),
            Node::Call(call) => self.call(call),
            Node::Chain(node) => match self.value(node) {
                Err(Stop::CutShort) => Ok(Value::Undefined),
                outcome => outcome,
            },
            Node::Unary(operator, node) => self.unary(*operator, node),
            Node::Binary(operator, sides) => {
                let left = self.value(&sides.0)?;
                let right = self.value(&sides.1)?;
                self.binary(*operator, &left, &right)
            }
            Node::And(sides) => {
                let left = self.value(&sides.0)?;
                if left.is_true() { self.value(&sides.1) } else { Ok(left) }
            }
            Node::Or(sides) => {
                let left = self.value(&sides.0)?;
                if left.is_true() { Ok(left) } else { self.value(&sides.1) }
            }
            Node::Coalesce(sides) => {
                let left = self.value(&sides.0)?;
                if left.is_nullish() { self.value(&sides.1) } else { Ok(left) }
            }
            Node::Conditional(nodes) => {
                let holds = self.value(&nodes.0)?.is_true();
                self.value(if holds { &nodes.1 } else { &nodes.2 })
            }
            Node::Assign(target, operator, node) => {
                // Where it goes is found before what goes there.
                let place = self.place(target)?;
                let value = match operator {
                    None => self.value(node)?,
                    Some(operator) => {
                        let old = self.target(target)?;
                        let by = self.value(node)?;
                        self.binary(*operator, &old, &by)?
                    }
                };
                self.assign(&place, value.clone())?;
                Ok(value)
            }
            Node::Step(step) => self.increment(step),
            Node::Sequence(nodes) => {
                let mut last = Value::Undefined;
                for node in nodes {
                    last = self.value(node)?;
                }
                Ok(last)
            }
        }
    }

    fn increment(&mut self, step: &Step) -> Outcome<Value<'a>> {
        let place = self.place(&step.target)?;
        let old = self.target(&step.target)?;
        let old = self.number(&old)?;
        let new = Value::Number(old + step.by);
        self.assign(&place, new.clone())?;
        Ok(if step.before { new } else { Value::Number(old) })
    }

    /// What is there before an assignment.
    fn target(&mut self, target: &Target) -> Outcome<Value<'a>> {
        match target {
            Target::Name(name) => self.name(name),
            // Its parts are evaluated once more, which must not be noticed.
            Target::Member(member) if is_quiet(&member.object) && is_quiet_key(&member.key) => {
                self.member(member)
            }
            Target::Member(_) => unsupported(),
        }
    }

    fn template(&mut self, texts: &[Rc<str>], nodes: &[Node]) -> Outcome<Value<'a>> {
        let mut joined = String::new();
        for (position, text) in texts.iter().enumerate() {
            joined.push_str(text);
            if let Some(node) = nodes.get(position) {
                let value = self.value(node)?;
                let text = self.string(&value)?;
                self.build(text.len())?;
                joined.push_str(&text);
            }
        }
        self.text(&joined)
    }

    pub(super) fn values(&mut self, items: &[Item]) -> Outcome<Vec<Value<'a>>> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Item::One(node) => values.push(self.value(node)?),
                Item::Spread(node) => {
                    let list = self.value(node)?;
                    values.extend(self.items(&list)?);
                }
            }
        }
        Ok(values)
    }

    fn fields(&mut self, fields: &[Field]) -> Outcome<Value<'a>> {
        let object = self.object()?;
        for field in fields {
            match field {
                Field::Named(name, node) => {
                    let value = self.value(node)?;
                    self.set_field(object, name, value)?;
                }
                Field::Computed(name, node) => {
                    let name = self.value(name)?;
                    let name = self.string(&name)?;
                    let value = self.value(node)?;
                    self.set_field(object, &name, value)?;
                }
                Field::Spread(node) => {
                    let source = self.value(node)?;
                    if source.is_nullish() {
                        continue;
                    }
                    for name in self.enumerable(&source)? {
                        let value = self.get(&source, &name)?;
                        self.set_field(object, &name, value)?;
                    }
                }
            }
        }
        Ok(Value::Object(object))
    }

    fn member(&mut self, member: &Member) -> Outcome<Value<'a>> {
        let object = self.value(&member.object)?;
        if member.optional && object.is_nullish() {
            return Err(Stop::CutShort);
        }
        let key = self.key(&member.key)?;
        self.get(&object, &key)
    }

    pub(super) fn key(&mut self, key: &Key) -> Outcome<Rc<str>> {
        match key {
            Key::Named(name) => Ok(Rc::clone(name)),
            Key::Computed(node) => {
                let key = self.value(node)?;
                self.string(&key)
            }
        }
    }

    pub(super) fn get(&mut self, object: &Value<'a>, key: &str) -> Outcome<Value<'a>> {
        match object {
            Value::Undefined => cannot_read(key, "undefined"),
            Value::Null => cannot_read(key, "null"),
            Value::String(text) => match (key, coerce::index(key)) {
                ("length", _) => Ok(length(text.encode_utf16().count())),
                (_, Some(index)) if text.is_ascii() => {
                    let at = usize::try_from(index).unwrap_or(usize::MAX);
                    match text.get(at..).and_then(|rest| rest.get(..1)) {
                        Some(char) => self.text(char),
                        None => Ok(Value::Undefined),
                    }
                }
                (_, Some(_) | None) => unsupported(),
            },
            Value::List(_) | Value::Given(Json::Array(_)) => match (key, coerce::index(key)) {
                ("length", _) => Ok(length(self.length(object)?)),
                (_, Some(index)) => {
                    let at = usize::try_from(index).unwrap_or(usize::MAX);
                    Ok(self.item(object, at).unwrap_or(Value::Undefined))
                }
                (_, None) => unsupported(),
            },
            Value::Object(_) | Value::Given(_) => match self.own(object, key)? {
                Some(value) => Ok(value),
                None if coerce::is_inherited(key) => unsupported(),
                None => Ok(Value::Undefined),
            },
            Value::Global(global) => global.constant(key),
            Value::Bool(_) | Value::Number(_) | Value::Long(_) | Value::Function(_) => {
                unsupported()
            }
        }
    }

    /// A field of an object itself.
    pub(super) fn own(&mut self, object: &Value<'a>, key: &str) -> Outcome<Option<Value<'a>>> {
        match object {
            Value::Given(Json::Object(fields)) => {
                let Some(field) = fields.get(key) else { return Ok(None) };
                if let Json::String(text) = field {
                    self.build(text.len())?;
                }
                Ok(Some(Value::given(field)))
            }
            Value::Object(at) => {
                let Some(object) = self.objects.get(*at) else { return unsupported() };
                let found = object.fields.iter().find(|(name, _)| **name == *key);
                let found = found.map(|(_, value)| value.clone());
                let looked_at = object.fields.len() / 8;
                self.steps(looked_at)?;
                Ok(found)
            }
            Value::Undefined
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Long(_)
            | Value::String(_)
            | Value::Given(_)
            | Value::List(_)
            | Value::Function(_)
            | Value::Global(_) => unsupported(),
        }
    }

    /// The names of an object's fields, in the order in which they are visited.
    pub(super) fn enumerable(&mut self, object: &Value<'a>) -> Outcome<Vec<Rc<str>>> {
        let names: Vec<Rc<str>> = match object {
            Value::Given(Json::Object(fields)) => {
                let mut names: Vec<Rc<str>> =
                    fields.keys().map(|name| name.as_str().into()).collect();
                // A stable sort: indexes in their order, then all else as it stands.
                names.sort_by_key(|name| coerce::index(name).map_or((1, 0), |index| (0, index)));
                names
            }
            Value::Object(at) => {
                let Some(object) = self.objects.get(*at) else { return unsupported() };
                object.fields.iter().map(|(name, _)| Rc::clone(name)).collect()
            }
            Value::List(_) | Value::Given(Json::Array(_)) => {
                let length = self.length(object)?;
                self.steps(length)?;
                (0..length).map(|index| index.to_string().into()).collect()
            }
            Value::Undefined
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Long(_)
            | Value::String(_)
            | Value::Given(_)
            | Value::Function(_)
            | Value::Global(_) => return unsupported(),
        };
        self.steps(names.len())?;
        self.build(names.iter().map(|name| name.len() + 16).sum())?;
        Ok(names)
    }

    /// All items of a list.
    pub(super) fn items(&mut self, list: &Value<'a>) -> Outcome<Vec<Value<'a>>> {
        let length = self.length(list)?;
        self.steps(length)?;
        Ok((0..length).filter_map(|at| self.item(list, at)).collect())
    }

    pub(super) fn length(&self, list: &Value<'a>) -> Outcome<usize> {
        match list {
            Value::List(at) => match self.lists.get(*at) {
                Some(list) => Ok(list.items.len()),
                None => unsupported(),
            },
            Value::Given(Json::Array(items)) => Ok(items.len()),
            Value::Undefined
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Long(_)
            | Value::String(_)
            | Value::Given(_)
            | Value::Object(_)
            | Value::Function(_)
            | Value::Global(_) => unsupported(),
        }
    }

    fn item(&self, list: &Value<'a>, at: usize) -> Option<Value<'a>> {
        match list {
            Value::List(list) => self.lists.get(*list)?.items.get(at).cloned(),
            Value::Given(json) => json.get(at).map(Value::given),
            Value::Undefined
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Long(_)
            | Value::String(_)
            | Value::Object(_)
            | Value::Function(_)
            | Value::Global(_) => None,
        }
    }

    /// The item that a walk over a list is at, or none at its end.
    pub(super) fn iterate(&mut self, list: &Value<'a>, at: usize) -> Outcome<Option<Value<'a>>> {
        self.length(list)?;
        Ok(self.item(list, at))
    }

    fn unary(&mut self, operator: Unary, node: &Node) -> Outcome<Value<'a>> {
        let value = self.value(node)?;
        Ok(match operator {
            Unary::Not => Value::Bool(!value.is_true()),
            Unary::Minus => Value::Number(-self.number(&value)?),
            Unary::Plus => Value::Number(self.number(&value)?),
            Unary::Invert => Value::Number(f64::from(!bits(self.number(&value)?))),
            Unary::TypeOf => Value::String(value.kind()?.into()),
            Unary::Void => Value::Undefined,
        })
    }

    fn binary(
        &mut self,
        operator: Binary,
        left: &Value<'a>,
        right: &Value<'a>,
    ) -> Outcome<Value<'a>> {
        let holds = match operator {
            Binary::Equal => self.equal(left, right)?,
            Binary::NotEqual => !self.equal(left, right)?,
            Binary::Same => same(left, right)?,
            Binary::NotSame => !same(left, right)?,
            Binary::Less => self.order(left, right)? == Some(Ordering::Less),
            Binary::More => self.order(left, right)? == Some(Ordering::Greater),
            Binary::AtMost => {
                matches!(self.order(left, right)?, Some(Ordering::Less | Ordering::Equal))
            }
            Binary::AtLeast => {
                matches!(self.order(left, right)?, Some(Ordering::Greater | Ordering::Equal))
            }
            Binary::In => self.is_in(left, right)?,
            Binary::Add => return self.add(left, right),
            Binary::Subtract
            | Binary::Multiply
            | Binary::Divide
            | Binary::Remainder
            | Binary::Power
            | Binary::BitAnd
            | Binary::BitOr
            | Binary::BitXor
            | Binary::ShiftLeft
            | Binary::ShiftRight
            | Binary::ShiftRightZero => {
                let left = self.number(left)?;
                let right = self.number(right)?;
                return arithmetic(operator, left, right).map(Value::Number);
            }
        };
        Ok(Value::Bool(holds))
    }

    fn is_in(&mut self, key: &Value<'a>, object: &Value<'a>) -> Outcome<bool> {
        let key = self.string(key)?;
        let found = self.own(object, &key)?.is_some();
        if !found && coerce::is_inherited(&key) { unsupported() } else { Ok(found) }
    }

    fn add(&mut self, left: &Value<'a>, right: &Value<'a>) -> Outcome<Value<'a>> {
        let left = self.primitive(left)?;
        let right = self.primitive(right)?;
        if matches!(left, Value::String(_)) || matches!(right, Value::String(_)) {
            let left = self.string(&left)?;
            let right = self.string(&right)?;
            self.build(left.len() + right.len())?;
            return Ok(Value::String([&*left, &*right].concat().into()));
        }
        Ok(Value::Number(self.number(&left)? + self.number(&right)?))
    }
}

fn cannot_read<T>(key: &str, of: &str) -> Outcome<T> {
    let message = format!("TypeError: Cannot read property '{key}' of {of}");
    Err(Stop::Error(ScriptError::Failed(message)))
}

fn length<'a>(length: usize) -> Value<'a> {
    // No list or text comes near the numbers that have gaps.
    Value::Number(u32::try_from(length).map_or(f64::INFINITY, f64::from))
}

fn arithmetic(operator: Binary, left: f64, right: f64) -> Outcome<f64> {
    let shift = || bits(right).cast_unsigned() % 32;
    Ok(match operator {
        Binary::Subtract => left - right,
        Binary::Multiply => left * right,
        Binary::Divide => left / right,
        Binary::Remainder => left % right,
        Binary::Power => power(left, right)?,
        Binary::BitAnd => f64::from(bits(left) & bits(right)),
        Binary::BitOr => f64::from(bits(left) | bits(right)),
        Binary::BitXor => f64::from(bits(left) ^ bits(right)),
        Binary::ShiftLeft => f64::from(bits(left) << shift()),
        Binary::ShiftRight => f64::from(bits(left) >> shift()),
        Binary::ShiftRightZero => f64::from(bits(left).cast_unsigned() >> shift()),
        Binary::Add
        | Binary::Equal
        | Binary::NotEqual
        | Binary::Same
        | Binary::NotSame
        | Binary::Less
        | Binary::AtMost
        | Binary::More
        | Binary::AtLeast
        | Binary::In => return unsupported(),
    })
}

/// A power of whole numbers whose value is exact; others differ in their last digit between engines.
pub(super) fn power(base: f64, exponent: f64) -> Outcome<f64> {
    /// Whole numbers below this are exact.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let whole = base.fract() == 0.0 && exponent.fract() == 0.0 && (0.0..=64.0).contains(&exponent);
    let mut result = 1.0;
    let mut left = exponent;
    while whole && left > 0.0 {
        result *= base;
        left -= 1.0;
    }
    if whole && result.abs() <= EXACT_MAX { Ok(result) } else { unsupported() }
}

/// The lowest 32 bits of a number's whole part.
fn bits(number: f64) -> i32 {
    const RANGE: f64 = 4_294_967_296.0;
    if !number.is_finite() {
        return 0;
    }
    let bits = number.trunc().rem_euclid(RANGE);
    // There is no other conversion; it is within 32 bits by now.
    (if bits >= RANGE / 2.0 { bits - RANGE } else { bits }) as i32
}

/// Whether evaluating it twice is like evaluating it once.
fn is_quiet(node: &Node) -> bool {
    match node {
        Node::Undefined
        | Node::Null
        | Node::Bool(_)
        | Node::Number(_)
        | Node::String(_)
        | Node::Name(_) => true,
        Node::Member(member) => is_quiet(&member.object) && is_quiet_key(&member.key),
        Node::Binary(_, sides) => is_quiet(&sides.0) && is_quiet(&sides.1),
        Node::Template(..)
        | Node::List(_)
        | Node::Object(_)
        | Node::Function(_)
        | Node::Call(_)
        | Node::Chain(_)
        | Node::Unary(..)
        | Node::And(_)
        | Node::Or(_)
        | Node::Coalesce(_)
        | Node::Conditional(_)
        | Node::Assign(..)
        | Node::Step(_)
        | Node::Sequence(_) => false,
    }
}

fn is_quiet_key(key: &Key) -> bool {
    match key {
        Key::Named(_) => true,
        Key::Computed(node) => is_quiet(node),
    }
}
