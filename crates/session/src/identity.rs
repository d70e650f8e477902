//! The key pair of a server, and how it admits clients.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use rustls::crypto::ring as provider;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{ServerConfig, ServerConnection};

use crate::session::{GREETING_BYTES, Greeting, PROTOCOL, Welcome};
use crate::{Error, Session, Token};

/// A server's key pair (Ed25519), and the token of those who may connect.
pub struct Identity {
    config: Arc<ServerConfig>,
    token: Token,
}

impl Identity {
    /// A new key pair, and a new token.
    pub fn new() -> Self {
        let random = SystemRandom::new();
        let pair = Ed25519KeyPair::generate_pkcs8(&random).expect("the system has random numbers");
        let pair = PrivatePkcs8KeyDer::from(pair.as_ref().to_vec());
        let key = provider::sign::any_eddsa_type(&pair).expect("a key that was just made");
        let public = key.public_key().expect("an Ed25519 key has a public key").to_vec();
        let token = Token::new(&public);
        let resolver = AlwaysResolvesServerRawPublicKeys::new(Arc::new(CertifiedKey::new(
            vec![CertificateDer::from(public)],
            key,
        )));
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .expect("the provider has TLS 1.3")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(resolver));
        // Sessions are never resumed, so no tickets are sent: they would be data that a client which only writes never reads.
        config.send_tls13_tickets = 0;
        Self { config: Arc::new(config), token }
    }

    /// The token of those who may connect.
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// Admits who shows the secret, within `patience`; each later read or write may take that long, too.
    pub fn accept(&self, stream: TcpStream, patience: Duration) -> Result<Session, Error> {
        let connection = ServerConnection::new(Arc::clone(&self.config))
            .map_err(|error| Error::System("TLS", std::io::Error::other(error)))?;
        let mut session = Session::server(connection, stream, patience)?;
        let greeting: Greeting = session.receive_at_most("a greeting", GREETING_BYTES)?;
        if greeting.protocol != PROTOCOL {
            let found = format!("version {}", greeting.protocol);
            // The client may be gone; what is wrong is said here anyway.
            let _ = session.send(&Welcome { protocol: PROTOCOL, admitted: false });
            return Err(Error::Protocol { expected: "the protocol's version 1", found });
        }
        let admitted = self.token.admits(&greeting.secret);
        let told = session.send(&Welcome { protocol: PROTOCOL, admitted });
        if !admitted {
            return Err(Error::WrongToken);
        }
        told?;
        session.set_patience(patience);
        Ok(session)
    }
}

impl Default for Identity {
    fn default() -> Self {
        Self::new()
    }
}
