//! jq, by jaq. It is bounded by its process: addresses, and the pool's patience.

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data, unwrap_valr};
use jaq_json::{Val, read};

use super::RESULT_BYTES_MAX;
use super::child::{Request, too_large};
use super::frame::Answer;

/// What the input is bound to.
const INPUT: &str = "$";

pub(super) fn evaluate(request: &Request<'_>) -> Answer {
    let input = request.bindings.get(INPUT).map_or("null", |input| input.get());
    match run(&request.script, input) {
        Ok(values) => answer(&values),
        Err(message) => Answer::Script(message),
    }
}

/// All outputs, as JSON; none once they are too large.
fn run(script: &str, input: &str) -> Result<Option<Vec<String>>, String> {
    let input = read::parse_single(input.as_bytes()).map_err(|error| error.to_string())?;
    let definitions = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let functions = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let arena = Arena::default();
    let program = File { code: script, path: () };
    let modules = Loader::new(definitions)
        .load(&arena, program)
        .map_err(|errors| format!("the filter cannot be read: {}", shown(&errors)))?;
    let filter = Compiler::default()
        .with_funs(functions)
        .compile(modules)
        .map_err(|errors| format!("the filter is not understood: {}", shown(&errors)))?;
    let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let mut values = Vec::new();
    let mut bytes = 0;
    for value in filter.id.run((context, input)).map(unwrap_valr) {
        let value = value.map_err(|error| error.to_string())?.to_string();
        bytes += value.len() + 1;
        if bytes > RESULT_BYTES_MAX / 2 {
            return Ok(None);
        }
        values.push(value);
    }
    Ok(Some(values))
}

fn answer(values: &Option<Vec<String>>) -> Answer {
    let Some(values) = values else { return Answer::Limit(too_large()) };
    let first = values.first().map_or("null", String::as_str);
    let json = format!("{{\"value\":{first},\"values\":[{}]}}", values.join(","));
    // It writes what JSON does not have: NaN, keys that are no text.
    match serde_json::from_str::<serde_json::Value>(&json) {
        Ok(_) => Answer::Value(json),
        Err(error) => Answer::Script(format!("its value cannot be written as JSON: {error}")),
    }
}

/// Errors in their own words, which are for those who write programs.
fn shown(errors: &impl std::fmt::Debug) -> String {
    format!("{errors:?}")
}
