//! The lease token: says nothing to clients, and to us which activation its bearer was handed.

use windlass_record::command::Lease;
use windlass_record::id::{JobKey, Token};

/// Of no activation: they count from 1. The engine finds it stale, after it has found the job.
const NO_ACTIVATION: u32 = 0;

/// The token as clients see it.
pub(crate) fn show(token: Token) -> String {
    format!("{}-{}", token.key, token.activation)
}

/// What a worker's word says about its lease. An empty token is none; one that is not of this job
/// is as good as a stale one.
pub(crate) fn read(key: JobKey, token: Option<&str>) -> Lease {
    let activation = token.filter(|token| !token.is_empty()).map(|token| {
        let (of, activation) = token.split_once('-').unwrap_or_default();
        match activation.parse() {
            Ok(activation) if of.parse() == Ok(key.raw()) => activation,
            Ok(_) | Err(_) => NO_ACTIVATION,
        }
    });
    Lease { key, activation }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_shown() {
        let key = JobKey::from_raw(2_251_799_813_685_249);
        let token = show(Token { key, activation: 7 });
        assert_eq!(read(key, Some(&token)).activation, Some(7));
        assert_eq!(read(JobKey::from_raw(1), Some(&token)).activation, Some(NO_ACTIVATION));
        for (given, expected) in
            [(None, None), (Some(""), None), (Some("x"), Some(0)), (Some("1-"), Some(0))]
        {
            assert_eq!(read(key, given).activation, expected, "{given:?}");
        }
    }
}
