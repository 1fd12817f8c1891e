//! Integers, text and bytes.

use super::DecodeError;

/// Appends fields to a buffer.
pub struct Encoder<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Encoder<'a> {
    /// Appends to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Encoder<'a> {
        Encoder { out }
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    /// A flag.
    pub fn bool(&mut self, value: bool) {
        self.out.push(u8::from(value));
    }

    /// A number, LEB128.
    #[inline]
    pub fn u64(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.out.push(value.to_le_bytes()[0]);
    }

    /// A number, LEB128.
    pub fn u32(&mut self, value: u32) {
        self.u64(u64::from(value));
    }

    /// A signed number, zigzag and LEB128.
    pub fn i32(&mut self, value: i32) {
        self.u32((value << 1 ^ value >> 31).cast_unsigned());
    }

    /// Length and bytes.
    #[inline]
    pub fn bytes(&mut self, value: &[u8]) {
        self.u64(u64::try_from(value.len()).expect("a length fits 64 bits"));
        self.out.extend_from_slice(value);
    }

    /// Length and UTF-8.
    pub fn str(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }
}

/// Takes fields from a buffer.
pub struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// Reads `bytes` from the start.
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { rest: bytes }
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        let (&first, rest) = self.rest.split_first().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(first)
    }

    /// A flag; anything but 0 is set.
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        Ok(self.u8()? != 0)
    }

    /// A number, LEB128.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        let mut shift = 0u32;
        loop {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift > 63 || (shift == 63 && bits > 1) {
                return Err(DecodeError::NumberTooLarge);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    /// A number, LEB128.
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        u32::try_from(self.u64()?).map_err(|_| DecodeError::NumberTooLarge)
    }

    /// A signed number, zigzag and LEB128.
    pub fn i32(&mut self) -> Result<i32, DecodeError> {
        let raw = self.u32()?;
        Ok((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
    }

    /// Length and bytes.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = usize::try_from(self.u64()?).map_err(|_| DecodeError::NumberTooLarge)?;
        let (head, rest) = self.rest.split_at_checked(len).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// Length and UTF-8.
    pub fn str(&mut self) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| DecodeError::NotText)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_at_their_edges() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            Encoder::new(&mut out).u64(value);
            assert_eq!(Decoder::new(&out).u64(), Ok(value));
        }
        for value in [0, -1, 1, i32::MIN, i32::MAX] {
            let mut out = Vec::new();
            Encoder::new(&mut out).i32(value);
            assert_eq!(Decoder::new(&out).i32(), Ok(value));
        }
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_an_error() {
        assert_eq!(Decoder::new(&[0xff; 11]).u64(), Err(DecodeError::NumberTooLarge));
        assert_eq!(Decoder::new(&[0xff; 3]).u64(), Err(DecodeError::Truncated));
    }
}
