//! Decimal numbers from text and to text.

use rust_decimal::Decimal;

/// The number of a text such as `-12.5` or `1e3`; `None` if it is none or beyond the range.
pub(crate) fn parse(text: &str) -> Option<Decimal> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        None => (text, 0),
        Some(at) => (text.get(..at)?, text.get(at + 1..)?.parse::<i32>().ok()?),
    };
    if !is_plain(mantissa) {
        return None;
    }
    let number = Decimal::from_str_exact(mantissa).or_else(|_| mantissa.parse()).ok()?;
    if exponent == 0 || number.is_zero() {
        return Some(number);
    }
    shift(number, exponent)
}

/// A number times a power of ten.
pub(crate) fn shift(number: Decimal, exponent: i32) -> Option<Decimal> {
    if exponent.unsigned_abs() > 60 {
        return (exponent < 0).then_some(Decimal::ZERO);
    }
    let mut shifted = number;
    let mut left = exponent.unsigned_abs();
    let ten = Decimal::TEN;
    while left > 0 {
        if exponent < 0 {
            let step = left.min(28 - shifted.scale().min(28));
            if step == 0 {
                shifted = shifted.checked_div(ten)?;
                left -= 1;
                continue;
            }
            shifted.set_scale(shifted.scale() + step).ok()?;
            left -= step;
        } else {
            let step = left.min(shifted.scale());
            if step == 0 {
                shifted = shifted.checked_mul(ten)?;
                left -= 1;
                continue;
            }
            shifted.set_scale(shifted.scale() - step).ok()?;
            left -= step;
        }
    }
    Some(shifted)
}

/// Optional sign, digits, optional fraction.
fn is_plain(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    !fraction.is_empty()
        && !unsigned.is_empty()
        && digits(whole)
        && digits(fraction)
        && unsigned != "."
}
