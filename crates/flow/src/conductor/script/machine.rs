//! The machine that runs a script: its values, its scopes, and statements.
//!
//! Everything that refers to something lives in a list of the machine and is named by its place
//! there, so that circles cost nothing and all goes at once. Nothing is freed before: the steps
//! bound how much there can be.

use std::rc::Rc;

use serde_json::Value as Json;

use super::tree::{
    Block, Body, Case, Declares, For, ForEach, Function, Name, Node, Statement, Target,
};
use super::{SIZE_MAX, ScriptError, coerce, global::Global};

/// How many evaluations may lie inside one another. Each takes some hundred bytes of stack.
const DEPTH_MAX: u32 = 320;

/// What a slot of a list or a scope costs.
const SLOT_BYTES: usize = 64;

/// A value of the language.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    /// A whole number that a number of the language cannot hold; it can only be passed on.
    Long(&'a Json),
    String(Rc<str>),
    /// A list or an object of a binding, which is only read.
    Given(&'a Json),
    List(usize),
    Object(usize),
    Function(usize),
    Global(Global),
}

/// What makes an evaluation stop early.
pub(super) enum Stop {
    Error(ScriptError),
    /// Something before `?.` was null: the chain is undefined.
    CutShort,
}

pub(super) type Outcome<T> = Result<T, Stop>;

/// How a statement ended, and the value that a console would show.
pub(super) enum Flow<'a> {
    Next(Option<Value<'a>>),
    Break(Option<Value<'a>>),
    Continue(Option<Value<'a>>),
    Return(Value<'a>),
}

/// An object made by the script, its fields in the order in which they are visited.
#[derive(Debug, Default)]
pub(super) struct Object<'a> {
    pub(super) fields: Vec<(Rc<str>, Value<'a>)>,
}

/// A list made by the script.
#[derive(Debug, Default)]
pub(super) struct List<'a> {
    pub(super) items: Vec<Value<'a>>,
    /// How often it was changed, so that who walks over it notices.
    pub(super) changes: u64,
}

/// A function with the scope it was made in.
#[derive(Clone, Debug)]
pub(super) struct Closure {
    pub(super) function: Rc<Function>,
    scope: usize,
}

#[derive(Debug, Default)]
struct Scope<'a> {
    around: Option<usize>,
    variables: Vec<Variable<'a>>,
}

#[derive(Clone, Debug)]
struct Variable<'a> {
    name: Name,
    /// None before `let` or `const` is reached.
    value: Option<Value<'a>>,
    is_constant: bool,
}

pub(super) struct Machine<'a> {
    pub(super) lists: Vec<List<'a>>,
    pub(super) objects: Vec<Object<'a>>,
    pub(super) functions: Vec<Closure>,
    scopes: Vec<Scope<'a>>,
    scope: usize,
    steps_left: u64,
    size_left: u64,
    depth: u32,
}

impl From<ScriptError> for Stop {
    fn from(error: ScriptError) -> Stop {
        Stop::Error(error)
    }
}

pub(super) fn unsupported<T>() -> Outcome<T> {
    Err(Stop::Error(ScriptError::Unsupported))
}

impl<'a> Machine<'a> {
    pub(super) fn new(bindings: &[(&str, &'a Json)], steps_max: u64) -> Machine<'a> {
        let variables = bindings.iter().map(|(name, value)| Variable {
            name: Name::from(*name),
            value: Some(Value::given(value)),
            is_constant: false,
        });
        let globals = Scope { around: None, variables: variables.collect() };
        Machine {
            lists: Vec::new(),
            objects: Vec::new(),
            functions: Vec::new(),
            scopes: vec![globals],
            scope: 0,
            steps_left: steps_max,
            size_left: SIZE_MAX,
            depth: 0,
        }
    }

    /// The value of a whole script.
    pub(super) fn script(&mut self, body: &Body) -> Result<Value<'a>, ScriptError> {
        match self.body(body, Vec::new()) {
            Ok(Flow::Next(value)) => Ok(value.unwrap_or(Value::Undefined)),
            Ok(Flow::Return(_) | Flow::Break(_) | Flow::Continue(_)) | Err(Stop::CutShort) => {
                Err(ScriptError::Unsupported)
            }
            Err(Stop::Error(error)) => Err(error),
        }
    }

    pub(super) fn step(&mut self) -> Outcome<()> {
        self.steps(1)
    }

    pub(super) fn steps(&mut self, count: usize) -> Outcome<()> {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.steps_left = self.steps_left.checked_sub(count).ok_or(ScriptError::Budget)?;
        Ok(())
    }

    pub(super) fn build(&mut self, bytes: usize) -> Outcome<()> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.size_left = self.size_left.checked_sub(bytes).ok_or(ScriptError::Budget)?;
        Ok(())
    }

    /// Runs something one level deeper. What is too deep here may be fine for a real engine.
    pub(super) fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        if self.depth == DEPTH_MAX {
            return unsupported();
        }
        self.depth += 1;
        let outcome = run(self);
        self.depth -= 1;
        outcome
    }

    pub(super) fn text(&mut self, text: &str) -> Outcome<Value<'a>> {
        self.build(text.len())?;
        Ok(Value::String(text.into()))
    }

    pub(super) fn list(&mut self, items: Vec<Value<'a>>) -> Outcome<Value<'a>> {
        self.steps(items.len())?;
        self.build(SLOT_BYTES * (items.len() + 1))?;
        self.lists.push(List { items, changes: 0 });
        Ok(Value::List(self.lists.len() - 1))
    }

    /// The items of a list, to change them.
    pub(super) fn change(&mut self, list: usize) -> Outcome<&mut Vec<Value<'a>>> {
        let Some(list) = self.lists.get_mut(list) else { return unsupported() };
        list.changes += 1;
        Ok(&mut list.items)
    }

    pub(super) fn object(&mut self) -> Outcome<usize> {
        self.build(SLOT_BYTES)?;
        self.objects.push(Object::default());
        Ok(self.objects.len() - 1)
    }

    /// Sets a field; names that are indexes come first, in their order.
    pub(super) fn set_field(&mut self, at: usize, name: &str, value: Value<'a>) -> Outcome<()> {
        if name == "__proto__" {
            return unsupported();
        }
        let Some(object) = self.objects.get_mut(at) else { return unsupported() };
        // Fields are looked for one by one.
        let looked_at = object.fields.len() / 8 + 1;
        if let Some((_, field)) = object.fields.iter_mut().find(|(field, _)| **field == *name) {
            *field = value;
        } else {
            let place = match coerce::index(name) {
                Some(index) => object.fields.partition_point(|(field, _)| {
                    coerce::index(field).is_some_and(|other| other < index)
                }),
                None => object.fields.len(),
            };
            object.fields.insert(place, (name.into(), value));
        }
        self.steps(looked_at)?;
        self.build(SLOT_BYTES + name.len())
    }

    pub(super) fn closure(&mut self, function: &Rc<Function>) -> Outcome<Value<'a>> {
        self.build(SLOT_BYTES)?;
        self.functions.push(Closure { function: Rc::clone(function), scope: self.scope });
        Ok(Value::Function(self.functions.len() - 1))
    }

    pub(super) fn call_closure(
        &mut self,
        at: usize,
        arguments: Vec<Value<'a>>,
    ) -> Outcome<Value<'a>> {
        let Some(closure) = self.functions.get(at).cloned() else { return unsupported() };
        let function = closure.function;
        let outer = self.scope;
        self.scope = closure.scope;
        let outcome = self.deeper(|machine| {
            if let (true, Some(name)) = (function.is_expression, &function.name) {
                machine.enter()?;
                machine.declare(name, Some(Value::Function(at)), true)?;
            }
            let mut arguments = arguments.into_iter();
            let parameters = function
                .parameters
                .iter()
                .map(|name| (Rc::clone(name), arguments.next().unwrap_or(Value::Undefined)));
            let parameters = parameters.collect();
            machine.body(&function.body, parameters)
        });
        self.scope = outer;
        match outcome? {
            Flow::Return(value) => Ok(value),
            Flow::Next(_) | Flow::Break(_) | Flow::Continue(_) => Ok(Value::Undefined),
        }
    }

    /// Runs a body in a scope of its own.
    fn body(&mut self, body: &Body, parameters: Vec<(Name, Value<'a>)>) -> Outcome<Flow<'a>> {
        let outer = self.scope;
        // What a script declares anew in the place of a binding differs between engines.
        let globals = self.scopes.first().map(|scope| scope.variables.as_slice());
        let hides = |name: &Name| {
            outer == 0 && globals.unwrap_or_default().iter().any(|global| global.name == *name)
        };
        let functions = body.functions.iter().filter_map(|function| function.name.as_ref());
        let declared = body.variables.iter().chain(&body.statements.lexical).chain(functions);
        let is_script = parameters.is_empty() && self.scopes.len() == 1;
        if is_script && declared.into_iter().any(hides) {
            return unsupported();
        }
        self.enter()?;
        for (name, value) in parameters {
            self.declare(&name, Some(value), false)?;
        }
        for name in &body.variables {
            if !self.is_declared_here(name) {
                self.declare(name, Some(Value::Undefined), false)?;
            }
        }
        for function in &body.functions {
            let value = self.closure(function)?;
            if let Some(name) = &function.name {
                if self.is_declared_here(name) {
                    self.assign_name(name, value)?;
                } else {
                    self.declare(name, Some(value), false)?;
                }
            }
        }
        self.declare_lexical(&body.statements)?;
        let outcome = self.statements(&body.statements.statements);
        self.scope = outer;
        outcome
    }

    fn block(&mut self, block: &Block) -> Outcome<Flow<'a>> {
        if block.lexical.is_empty() {
            return self.statements(&block.statements);
        }
        let outer = self.scope;
        self.enter()?;
        self.declare_lexical(block)?;
        let outcome = self.statements(&block.statements);
        self.scope = outer;
        outcome
    }

    fn declare_lexical(&mut self, block: &Block) -> Outcome<()> {
        for name in &block.lexical {
            if self.is_declared_here(name) {
                return unsupported();
            }
            self.declare(name, None, false)?;
        }
        Ok(())
    }

    fn statements(&mut self, statements: &[Statement]) -> Outcome<Flow<'a>> {
        let mut last = None;
        for statement in statements {
            match self.deeper(|machine| machine.statement(statement))? {
                Flow::Next(value) => last = value.or(last),
                Flow::Break(value) => return Ok(Flow::Break(value.or(last))),
                Flow::Continue(value) => return Ok(Flow::Continue(value.or(last))),
                Flow::Return(value) => return Ok(Flow::Return(value)),
            }
        }
        Ok(Flow::Next(last))
    }

    fn statement(&mut self, statement: &Statement) -> Outcome<Flow<'a>> {
        self.step()?;
        match statement {
            Statement::Empty => Ok(Flow::Next(None)),
            Statement::Expression(node) => Ok(Flow::Next(Some(self.value(node)?))),
            Statement::Declare(declares, names) => {
                for (name, value) in names {
                    self.initialize(*declares, name, value.as_ref())?;
                }
                Ok(Flow::Next(None))
            }
            Statement::Block(block) => self.block(block),
            Statement::If(condition, then, otherwise) => {
                let condition = self.value(condition)?;
                let flow = match (condition.is_true(), otherwise) {
                    (true, _) => self.statement(then)?,
                    (false, Some(otherwise)) => {
                        self.deeper(|machine| machine.statement(otherwise))?
                    }
                    (false, None) => Flow::Next(None),
                };
                Ok(flow.or_undefined())
            }
            Statement::Return(None) => Ok(Flow::Return(Value::Undefined)),
            Statement::Return(Some(node)) => Ok(Flow::Return(self.value(node)?)),
            Statement::Break => Ok(Flow::Break(None)),
            Statement::Continue => Ok(Flow::Continue(None)),
            Statement::While(condition, body) => self.repeat(Some(condition), body, None, true),
            Statement::DoWhile(body, condition) => self.repeat(Some(condition), body, None, false),
            Statement::For(repeat) => self.for_loop(repeat),
            Statement::ForEach(each) => self.for_each(each),
            Statement::Switch(node, cases) => self.switch(node, cases),
        }
    }

    fn initialize(&mut self, declares: Declares, name: &Name, node: Option<&Node>) -> Outcome<()> {
        let value = match (node, declares) {
            (Some(node), Declares::Var | Declares::Let | Declares::Const) => self.value(node)?,
            (None, Declares::Var) => return Ok(()),
            (None, Declares::Let | Declares::Const) => Value::Undefined,
        };
        match declares {
            Declares::Var => self.assign_name(name, value),
            Declares::Let | Declares::Const => {
                let Some(variable) = self.variable(name) else { return unsupported() };
                variable.value = Some(value);
                variable.is_constant = declares == Declares::Const;
                Ok(())
            }
        }
    }

    /// A loop around `body`: with the condition before it or behind, and a step after each round.
    fn repeat(
        &mut self,
        condition: Option<&Node>,
        body: &Statement,
        next: Option<&Node>,
        condition_first: bool,
    ) -> Outcome<Flow<'a>> {
        let mut last = Value::Undefined;
        let mut first = true;
        loop {
            self.step()?;
            if let Some(condition) = condition
                && (condition_first || !first)
                && !self.value(condition)?.is_true()
            {
                return Ok(Flow::Next(Some(last)));
            }
            first = false;
            if let Some(end) = self.round(body, &mut last)? {
                return Ok(end);
            }
            if let Some(next) = next {
                self.copy_scope()?;
                self.value(next)?;
            }
        }
    }

    /// One time through a loop's body; a flow if it was the last time.
    fn round(&mut self, body: &Statement, last: &mut Value<'a>) -> Outcome<Option<Flow<'a>>> {
        match self.statement(body)? {
            Flow::Next(value) | Flow::Continue(value) => {
                if let Some(value) = value {
                    *last = value;
                }
                Ok(None)
            }
            Flow::Break(value) => Ok(Some(Flow::Next(Some(value.unwrap_or_else(|| last.clone()))))),
            Flow::Return(value) => Ok(Some(Flow::Return(value))),
        }
    }

    fn for_loop(&mut self, repeat: &For) -> Outcome<Flow<'a>> {
        let outer = self.scope;
        self.enter()?;
        match &repeat.first {
            Some(Statement::Declare(declares @ (Declares::Let | Declares::Const), names)) => {
                for (name, _) in names {
                    if self.is_declared_here(name) {
                        return unsupported();
                    }
                    self.declare(name, None, false)?;
                }
                for (name, value) in names {
                    self.initialize(*declares, name, value.as_ref())?;
                }
            }
            Some(statement) => {
                self.statement(statement)?;
            }
            None => {}
        }
        // Without a step there is still one, for the copy of the scope that it implies.
        let next = repeat.next.as_ref().unwrap_or(&Node::Undefined);
        let flow = self.repeat(repeat.condition.as_ref(), &repeat.body, Some(next), true)?;
        self.scope = outer;
        Ok(flow)
    }

    fn for_each(&mut self, each: &ForEach) -> Outcome<Flow<'a>> {
        let outer = self.scope;
        if each.declares != Declares::Var {
            // The source must not use the name that it gives values to.
            self.enter()?;
            self.declare(&each.name, None, false)?;
        }
        let source = self.value(&each.source)?;
        self.scope = outer;
        let keys = if each.of_items { None } else { Some(self.enumerable(&source)?) };
        let mut last = Value::Undefined;
        let mut position = 0;
        loop {
            self.step()?;
            let item = match &keys {
                Some(keys) => keys.get(position).cloned().map(Value::String),
                None => self.iterate(&source, position)?,
            };
            let Some(item) = item else { return Ok(Flow::Next(Some(last))) };
            position += 1;
            match each.declares {
                Declares::Var => self.assign_name(&each.name, item)?,
                Declares::Let | Declares::Const => {
                    self.enter()?;
                    let is_constant = each.declares == Declares::Const;
                    self.declare(&each.name, Some(item), is_constant)?;
                }
            }
            let end = self.round(&each.body, &mut last)?;
            self.scope = outer;
            if let Some(end) = end {
                return Ok(end);
            }
        }
    }

    fn switch(&mut self, node: &Node, cases: &[Case]) -> Outcome<Flow<'a>> {
        let value = self.value(node)?;
        let mut chosen = None;
        for (position, case) in cases.iter().enumerate() {
            let Some(test) = &case.test else { continue };
            let test = self.value(test)?;
            if coerce::same(&value, &test)? {
                chosen = Some(position);
                break;
            }
        }
        let chosen = chosen.or_else(|| cases.iter().position(|case| case.test.is_none()));
        let mut last = Value::Undefined;
        for case in cases.get(chosen.unwrap_or(cases.len())..).unwrap_or_default() {
            match self.statements(&case.statements)? {
                Flow::Next(value) => last = value.unwrap_or(last),
                Flow::Break(value) => return Ok(Flow::Next(Some(value.unwrap_or(last)))),
                Flow::Continue(value) => return Ok(Flow::Continue(Some(value.unwrap_or(last)))),
                Flow::Return(value) => return Ok(Flow::Return(value)),
            }
        }
        Ok(Flow::Next(Some(last)))
    }

    fn enter(&mut self) -> Outcome<()> {
        self.build(SLOT_BYTES)?;
        self.scopes.push(Scope { around: Some(self.scope), variables: Vec::new() });
        self.scope = self.scopes.len() - 1;
        Ok(())
    }

    /// A new scope with the variables of this one: each round of a loop has its own.
    fn copy_scope(&mut self) -> Outcome<()> {
        let Some(scope) = self.scopes.get(self.scope) else { return unsupported() };
        if scope.variables.is_empty() {
            return Ok(());
        }
        let copy = Scope { around: scope.around, variables: scope.variables.clone() };
        self.build(SLOT_BYTES * (copy.variables.len() + 1))?;
        self.scopes.push(copy);
        self.scope = self.scopes.len() - 1;
        Ok(())
    }

    fn declare(&mut self, name: &Name, value: Option<Value<'a>>, is_constant: bool) -> Outcome<()> {
        self.build(SLOT_BYTES)?;
        let Some(scope) = self.scopes.get_mut(self.scope) else { return unsupported() };
        scope.variables.push(Variable { name: Rc::clone(name), value, is_constant });
        Ok(())
    }

    fn is_declared_here(&self, name: &Name) -> bool {
        let scope = self.scopes.get(self.scope);
        scope.is_some_and(|scope| scope.variables.iter().any(|variable| variable.name == *name))
    }

    fn variable(&mut self, name: &Name) -> Option<&mut Variable<'a>> {
        let mut at = self.scope;
        loop {
            let scope = self.scopes.get(at)?;
            if let Some(found) = scope.variables.iter().position(|variable| variable.name == *name)
            {
                return self.scopes.get_mut(at)?.variables.get_mut(found);
            }
            at = scope.around?;
        }
    }

    pub(super) fn name(&mut self, name: &Name) -> Outcome<Value<'a>> {
        match self.variable(name) {
            Some(variable) => variable.value.clone().ok_or(ScriptError::Unsupported.into()),
            None => match Global::named(name) {
                Some(global) => Ok(global),
                None => unsupported(),
            },
        }
    }

    pub(super) fn assign_name(&mut self, name: &Name, value: Value<'a>) -> Outcome<()> {
        match self.variable(name) {
            Some(variable) if !variable.is_constant && variable.value.is_some() => {
                variable.value = Some(value);
                Ok(())
            }
            Some(_) | None => unsupported(),
        }
    }

    pub(super) fn assign(&mut self, place: &Place, value: Value<'a>) -> Outcome<()> {
        match place {
            Place::Name(name) => self.assign_name(name, value),
            Place::Field(at, name) => self.set_field(*at, name, value),
            Place::Item(at, index) => {
                let items = self.change(*at)?;
                if *index == items.len() {
                    items.push(value);
                    return self.build(SLOT_BYTES);
                }
                // One further behind the end would leave holes.
                let Some(item) = items.get_mut(*index) else { return unsupported() };
                *item = value;
                Ok(())
            }
        }
    }

    /// Where an assignment goes, its parts evaluated once.
    pub(super) fn place(&mut self, target: &Target) -> Outcome<Place> {
        let member = match target {
            Target::Name(name) => return Ok(Place::Name(Rc::clone(name))),
            Target::Member(member) => member,
        };
        let object = self.value(&member.object)?;
        let key = self.key(&member.key)?;
        match object {
            Value::Object(at) => Ok(Place::Field(at, key)),
            Value::List(at) => {
                match coerce::index(&key).and_then(|index| usize::try_from(index).ok()) {
                    Some(index) => Ok(Place::Item(at, index)),
                    None => unsupported(),
                }
            }
            Value::Undefined
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Long(_)
            | Value::String(_)
            | Value::Given(_)
            | Value::Function(_)
            | Value::Global(_) => unsupported(),
        }
    }
}

/// Where an assignment goes.
pub(super) enum Place {
    Name(Name),
    Field(usize, Rc<str>),
    Item(usize, usize),
}

impl<'a> Flow<'a> {
    /// What a statement that always has a value makes of the flow in it.
    fn or_undefined(self) -> Flow<'a> {
        match self {
            Flow::Next(value) => Flow::Next(Some(value.unwrap_or(Value::Undefined))),
            Flow::Break(value) => Flow::Break(Some(value.unwrap_or(Value::Undefined))),
            Flow::Continue(value) => Flow::Continue(Some(value.unwrap_or(Value::Undefined))),
            Flow::Return(value) => Flow::Return(value),
        }
    }
}
