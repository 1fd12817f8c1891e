//! JavaScript, by QuickJS: a fresh engine for each script, which knows the language and nothing else.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rquickjs::context::EvalOptions;
use rquickjs::{CatchResultExt, CaughtError, Coerced, Context, Ctx, FromJs, Runtime, Value};

use super::RESULT_BYTES_MAX;
use super::child::{Form, Request, too_large};
use super::frame::Answer;

/// What an engine may allocate.
const MEMORY_BYTES_MAX: usize = 128 << 20;

/// How deep calls may go; a fraction of the process's own stack.
const STACK_BYTES_MAX: usize = 1 << 20;

pub(super) fn evaluate(request: &Request<'_>, limit: Duration) -> Answer {
    match run(request, limit) {
        Ok(answer) => answer,
        Err(error) => Answer::Limit(format!("the engine could not be started: {error}")),
    }
}

fn run(request: &Request<'_>, limit: Duration) -> rquickjs::Result<Answer> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(MEMORY_BYTES_MAX);
    runtime.set_max_stack_size(STACK_BYTES_MAX);
    let late = Rc::new(Cell::new(false));
    let began = Instant::now();
    let interrupt = {
        let late = Rc::clone(&late);
        move || {
            late.set(late.get() || began.elapsed() >= limit);
            late.get()
        }
    };
    runtime.set_interrupt_handler(Some(Box::new(interrupt)));
    let context = Context::full(&runtime)?;
    Ok(context.with(|ctx| match script(&ctx, request).catch(&ctx) {
        Ok(Some(json)) if json.len() > RESULT_BYTES_MAX => Answer::Limit(too_large()),
        Ok(Some(json)) => match serde_json::from_str::<serde_json::Value>(&json) {
            Ok(_) => Answer::Value(format!("{{\"value\":{json}}}")),
            // Half of a character can be in a text of the language, and nowhere else.
            Err(error) => Answer::Script(format!("its value cannot be written as JSON: {error}")),
        },
        Ok(None) => Answer::Value("{\"value\":null}".to_owned()),
        Err(_) if late.get() => {
            Answer::Limit(format!("the script took longer than {} ms", limit.as_millis()))
        }
        Err(error) => failure(error),
    }))
}

/// The value of a script as JSON; none is undefined.
fn script(ctx: &Ctx<'_>, request: &Request<'_>) -> rquickjs::Result<Option<String>> {
    for (name, value) in &request.bindings {
        let value = ctx.json_parse(value.get())?;
        ctx.globals().set(name.as_str(), value)?;
    }
    let source = match request.form {
        Form::Expression => request.script.clone(),
        // On lines of its own, so that a comment at its end stays one.
        Form::Function => format!("(function () {{\n{}\n}})()", request.script),
    };
    let mut options = EvalOptions::default();
    options.strict = false;
    let value: Value<'_> = ctx.eval_with_options(source, options)?;
    match ctx.json_stringify(value)? {
        Some(json) => json.to_string().map(Some),
        None => Ok(None),
    }
}

fn failure(error: CaughtError<'_>) -> Answer {
    let message = match error {
        CaughtError::Exception(exception) => {
            let name = exception.as_object().get::<_, Option<String>>("name").ok().flatten();
            let name = name.unwrap_or_else(|| "Error".to_owned());
            format!("{name}: {}", exception.message().unwrap_or_default())
        }
        CaughtError::Value(value) => {
            let ctx = value.ctx().clone();
            let text = Coerced::<String>::from_js(&ctx, value).map(|text| text.0);
            text.unwrap_or_else(|_| "it threw something".to_owned())
        }
        CaughtError::Error(error) => error.to_string(),
    };
    if message.contains("out of memory") {
        let most = MEMORY_BYTES_MAX >> 20;
        return Answer::Limit(format!("the script takes more than {most} MiB of memory"));
    }
    Answer::Script(message)
}
