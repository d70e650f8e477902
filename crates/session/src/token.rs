//! What a server tells those who may connect.

use std::fmt;
use std::str::FromStr;

use data_encoding::BASE64URL_NOPAD;
use ring::rand::{SecureRandom, SystemRandom};

use crate::Error;

/// The start of a token's text; the digit is the version of its form.
const START: &str = "el1_";
/// Length of the fingerprint, and of the secret, bytes.
const HALF: usize = 16;

/// The fingerprint of a server's public key, and a secret that the server compares.
///
/// Its text is `el1_` and 43 characters of base64url. `Debug` does not show the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    fingerprint: [u8; HALF],
    secret: [u8; HALF],
}

impl Token {
    /// A new secret for the key with this SubjectPublicKeyInfo.
    pub(crate) fn new(public_key: &[u8]) -> Self {
        let mut secret = [0; HALF];
        SystemRandom::new().fill(&mut secret).expect("the system has random numbers");
        Self { fingerprint: fingerprint(public_key), secret }
    }

    /// Whether it is of the key with this SubjectPublicKeyInfo.
    pub(crate) fn is_of(&self, public_key: &[u8]) -> bool {
        self.fingerprint == fingerprint(public_key)
    }

    /// What a client shows.
    pub(crate) fn secret(&self) -> &[u8] {
        &self.secret
    }

    /// Whether a client has shown the secret. Takes the same time for every wrong one: hashes are compared, by a comparison in
    /// constant time.
    pub(crate) fn admits(&self, shown: &[u8]) -> bool {
        blake3::hash(shown) == blake3::hash(&self.secret)
    }
}

fn fingerprint(public_key: &[u8]) -> [u8; HALF] {
    let mut half = [0; HALF];
    half.copy_from_slice(&blake3::hash(public_key).as_bytes()[..HALF]);
    half
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = [self.fingerprint, self.secret].concat();
        write!(f, "{START}{}", BASE64URL_NOPAD.encode(&bytes))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

impl FromStr for Token {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let digits = text.trim().strip_prefix(START).ok_or(Error::Token("which starts with el1_"))?;
        let bytes = BASE64URL_NOPAD.decode(digits.as_bytes()).unwrap_or_default();
        let bytes: [u8; 2 * HALF] =
            bytes.try_into().map_err(|_| Error::Token("which has 43 letters, digits, - and _ after el1_"))?;
        let (fingerprint, secret) = bytes.split_at(HALF);
        let half = |bytes: &[u8]| bytes.try_into().expect("its length");
        Ok(Self { fingerprint: half(fingerprint), secret: half(secret) })
    }
}
