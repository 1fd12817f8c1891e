//! Seals secrets before they are written, and opens them where a connector is started.
//!
//! A sealed value is `{"$sealed": "1.<key>.<text>"}`: a format, the name of the key, and base64 of nonce
//! and ciphertext of the value as JSON. The scope, which names the document, is authenticated with it:
//! a sealed value opens only where it was put. A change of the format is a new first number; old ones
//! are read for ever.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac};
use serde_json::{Value, json};

use crate::secret;

/// The one field of a sealed value.
pub(crate) const SEALED: &str = "$sealed";

/// What is shown instead of a secret, and kept when it comes back.
pub(crate) const MASK: &str = "**********";

/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// The first part of a sealed text.
const FORMAT: &str = "1";

/// Bytes of a key file that are read: more than one has.
const FILE_BYTES_MAX: u64 = 1_024;

/// A key, and what can be done with it. The key itself cannot be had back.
pub struct Vault {
    key: LessSafeKey,
    /// The beginning of the key's hash.
    name: String,
    random: SystemRandom,
    tokens: hmac::Key,
}

/// Why something was not sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The key file could not be read or made.
    #[error("failed to read or make the key file {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others than its owner can read the key file.
    #[error("the key file {} can be read by others: chmod 600 it", path.display())]
    Exposed {
        /// Which.
        path: PathBuf,
    },
    /// A key is 32 bytes in base64.
    #[error("a key is {KEY_BYTES} bytes in base64, such as `openssl rand -base64 32` prints")]
    Key,
    /// The machine gave no random numbers.
    #[error("failed to get random numbers from the machine")]
    Random,
    /// It was sealed with another key.
    #[error("a secret was sealed with the key {found}, but the key here is {here}")]
    OtherKey {
        /// The name of its key.
        found: String,
        /// The name of this one.
        here: String,
    },
    /// It is not what was sealed, or it was moved.
    #[error("a sealed secret is damaged, or was copied from another place")]
    Damaged,
    /// It is too deep to be looked through.
    #[error("the configuration is nested too deeply")]
    Deep,
}

impl Vault {
    /// A vault with the key of this file, which is made, for its owner only, if it does not exist.
    pub fn at(path: &Path) -> Result<Vault, VaultError> {
        let failed = |source| VaultError::File { path: path.to_owned(), source };
        if !path.try_exists().map_err(failed)? {
            make_file(path, &BASE64.encode(random_key()?)).map_err(failed)?;
        }
        Vault::read(path)
    }

    /// A vault with the key of this file, for whoever has only secrets that are there: a new key would open
    /// none of them, and be taken for theirs afterwards.
    pub fn read(path: &Path) -> Result<Vault, VaultError> {
        let failed = |source| VaultError::File { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.permissions().mode() & 0o077 != 0 {
            return Err(VaultError::Exposed { path: path.to_owned() });
        }
        let mut text = String::new();
        file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
        Vault::of(&text)
    }

    /// A vault with this key, in base64.
    pub fn of(text: &str) -> Result<Vault, VaultError> {
        let bytes = BASE64.decode(text.trim()).map_err(|_| VaultError::Key)?;
        let key = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| VaultError::Key)?;
        let hash = digest::digest(&digest::SHA256, &bytes);
        let name = hash.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        // A key of its own, so that neither use says anything about the other.
        let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &bytes), b"airbyte tokens");
        let tokens = hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref());
        Ok(Vault { key: LessSafeKey::new(key), name, random: SystemRandom::new(), tokens })
    }

    /// The name of its key, as sealed values carry it.
    pub(crate) fn key_name(&self) -> &str {
        &self.name
    }

    /// Seals every secret of a configuration in place: what the spec marks, or what looks like one. What
    /// is sealed already stays. The scope is `<tenant>/<kind>/<id>` of the document that it goes to.
    pub fn seal(
        &self,
        scope: &str,
        configuration: &mut Value,
        spec: Option<&Value>,
    ) -> Result<(), VaultError> {
        secret::each(configuration, spec, &mut |value| {
            if !is_sealed(value) {
                *value = self.sealed(scope, value)?;
            }
            Ok(())
        })
    }

    /// Opens every sealed value in place.
    pub fn open(&self, scope: &str, configuration: &mut Value) -> Result<(), VaultError> {
        if let Some(text) = sealed_text(configuration) {
            *configuration = self.opened(scope, text)?;
            return Ok(());
        }
        match configuration {
            Value::Array(items) => items.iter_mut().try_for_each(|item| self.open(scope, item)),
            Value::Object(fields) => {
                fields.values_mut().try_for_each(|field| self.open(scope, field))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn sealed(&self, scope: &str, value: &Value) -> Result<Value, VaultError> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_| VaultError::Random)?;
        let mut text = value.to_string().into_bytes();
        let aad = Aad::from(scope.as_bytes());
        let unique = Nonce::assume_unique_for_key(nonce);
        self.key
            .seal_in_place_append_tag(unique, aad, &mut text)
            .map_err(|_| VaultError::Damaged)?;
        let bytes = [nonce.as_slice(), &text].concat();
        Ok(json!({ SEALED: format!("{FORMAT}.{}.{}", self.name, BASE64.encode(bytes)) }))
    }

    fn opened(&self, scope: &str, text: &str) -> Result<Value, VaultError> {
        let mut parts = text.splitn(3, '.');
        let (Some(FORMAT), Some(key), Some(text)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(VaultError::Damaged);
        };
        if key != self.name {
            return Err(VaultError::OtherKey { found: key.to_owned(), here: self.name.clone() });
        }
        let bytes = BASE64.decode(text).map_err(|_| VaultError::Damaged)?;
        let (nonce, text) = bytes.split_at_checked(NONCE_LEN).ok_or(VaultError::Damaged)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| VaultError::Damaged)?;
        let mut text = text.to_vec();
        let aad = Aad::from(scope.as_bytes());
        let plain =
            self.key.open_in_place(nonce, aad, &mut text).map_err(|_| VaultError::Damaged)?;
        serde_json::from_slice(plain).map_err(|_| VaultError::Damaged)
    }

    /// Proof that this vault has seen a text.
    pub(crate) fn sign(&self, text: &str) -> Vec<u8> {
        hmac::sign(&self.tokens, text.as_bytes()).as_ref().to_vec()
    }

    /// Whether a proof is one of this text.
    pub(crate) fn has_signed(&self, text: &str, proof: &[u8]) -> bool {
        hmac::verify(&self.tokens, text.as_bytes(), proof).is_ok()
    }

    /// Whether two texts are the same, in a time that does not say where they differ.
    pub(crate) fn same(&self, a: &str, b: &str) -> bool {
        self.has_signed(a, &self.sign(b))
    }

    /// A new id: a UUID of random bits.
    pub(crate) fn new_id(&self) -> Result<String, VaultError> {
        let mut bytes = [0; 16];
        self.random.fill(&mut bytes).map_err(|_| VaultError::Random)?;
        let bits = u128::from_be_bytes(bytes);
        const VERSION: u128 = 0xf << 76;
        const VARIANT: u128 = 0b11 << 62;
        let bits = bits & !VERSION & !VARIANT | 0x4 << 76 | 0b10 << 62;
        let hex = format!("{bits:032x}");
        let part = |from, to| hex.get(from..to).unwrap_or_default();
        let parts = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)];
        Ok(parts.join("-"))
    }
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vault").field("key", &self.name).finish_non_exhaustive()
    }
}

/// The text of a sealed value, if it is one.
pub(crate) fn sealed_text(value: &Value) -> Option<&str> {
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    fields.get(SEALED)?.as_str()
}

/// Whether it is sealed.
pub(crate) fn is_sealed(value: &Value) -> bool {
    sealed_text(value).is_some()
}

fn random_key() -> Result<[u8; KEY_BYTES], VaultError> {
    let mut bytes = [0; KEY_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| VaultError::Random)?;
    Ok(bytes)
}

/// Whole or not at all: half a key would be one that nobody has.
fn make_file(path: &Path, text: &str) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".tmp");
    let unfinished = PathBuf::from(unfinished);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&unfinished)?;
    file.write_all(format!("{text}\n").as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path)?;
    match path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        Some(dir) => File::open(dir)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCOPE: &str = "default/airbyte.source/1";

    #[test]
    fn what_is_sealed_opens_in_its_place_only() {
        let vault = Vault::of(&BASE64.encode([7; KEY_BYTES])).unwrap();
        let plain =
            json!({ "host": "h", "password": "hunter2", "deep": [{ "token": { "a": 1 } }] });
        let mut value = plain.clone();
        vault.seal(SCOPE, &mut value, None).unwrap();
        assert_eq!(value["host"], "h");
        assert!(is_sealed(&value["password"]) && is_sealed(&value["deep"][0]["token"]), "{value}");
        let again = value.clone();
        vault.seal(SCOPE, &mut value, None).unwrap();
        assert_eq!(value, again, "what is sealed stays");
        let damaged = vault.open("default/airbyte.source/2", &mut value.clone()).unwrap_err();
        assert!(matches!(damaged, VaultError::Damaged), "{damaged}");
        let other = Vault::of(&BASE64.encode([8; KEY_BYTES])).unwrap();
        let refused = other.open(SCOPE, &mut value.clone()).unwrap_err();
        assert!(matches!(refused, VaultError::OtherKey { .. }), "{refused}");
        vault.open(SCOPE, &mut value).unwrap();
        assert_eq!(value, plain);
    }

    #[test]
    fn damaged_texts_do_not_open() {
        let vault = Vault::of(&BASE64.encode([7; KEY_BYTES])).unwrap();
        let name = vault.key_name().to_owned();
        for text in ["", "1", "2.x.y", &format!("1.{name}.!"), &format!("1.{name}.AAAA")] {
            let error = vault.open(SCOPE, &mut json!({ SEALED: text })).unwrap_err();
            assert!(matches!(error, VaultError::Damaged), "{text}: {error}");
        }
    }

    #[test]
    fn a_key_file_is_made_once_and_for_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("airbyte.key");
        let missing = Vault::read(&path).unwrap_err();
        assert!(matches!(missing, VaultError::File { .. }) && !path.exists(), "{missing}");
        let name = Vault::at(&path).unwrap().key_name().to_owned();
        assert_eq!(Vault::read(&path).unwrap().key_name(), name);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Vault::at(&path).unwrap().key_name(), name);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(Vault::at(&path).unwrap_err(), VaultError::Exposed { .. }));
        assert!(matches!(Vault::of("short").unwrap_err(), VaultError::Key));
    }

    #[test]
    fn ids_are_uuids_of_version_four() {
        let vault = Vault::of(&BASE64.encode([7; KEY_BYTES])).unwrap();
        let id = vault.new_id().unwrap();
        assert_eq!(id.len(), 36);
        assert_eq!(id.as_bytes()[14], b'4', "{id}");
        assert!(b"89ab".contains(&id.as_bytes()[19]), "{id}");
        assert_ne!(id, vault.new_id().unwrap());
    }
}
