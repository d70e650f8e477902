//! A connection to a peer that has shown who it is.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring as provider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::version::TLS13;
use rustls::{
    CertificateError, CipherSuite, ClientConfig, ClientConnection, DigitallySignedStruct, ServerConnection,
    SignatureScheme, StreamOwned,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::socket::Socket;
use crate::{Error, MOST_BYTES, Token, message};

/// The version of what both sides say to each other.
pub(crate) const PROTOCOL: u32 = 1;
/// The largest greeting, bytes: nothing longer is read from a client that has not shown the secret.
pub(crate) const GREETING_BYTES: u32 = 256;

/// What a client says first.
#[derive(Serialize, Deserialize)]
pub(crate) struct Greeting {
    pub protocol: u32,
    pub secret: Vec<u8>,
}

/// What a server answers.
#[derive(Serialize, Deserialize)]
pub(crate) struct Welcome {
    pub protocol: u32,
    pub admitted: bool,
}

enum Tls {
    Client(Box<StreamOwned<ClientConnection, Socket>>),
    Server(Box<StreamOwned<ServerConnection, Socket>>),
}

/// A connection to a peer that has shown who it is: encrypted, authenticated, and with a patience. It reads and writes bytes
/// ([`Read`], [`Write`]) or messages; what was written leaves at the latest when it is flushed.
pub struct Session(Tls);

/// Connects to a server by its address and token.
///
/// The connection, the handshake and the server's answer have to come within `patience`; each later read or write may take that
/// long, too.
pub fn connect(to: SocketAddr, token: &Token, patience: Duration) -> Result<Session, Error> {
    let stream = TcpStream::connect_timeout(&to, patience).map_err(|error| failed(error, patience))?;
    over(stream, token, patience)
}

/// As [`connect`], over a socket that is connected.
pub fn over(stream: TcpStream, token: &Token, patience: Duration) -> Result<Session, Error> {
    let mut crypto = provider::default_provider();
    if !has_aes() {
        // The server takes the client's first choice. ChaCha20 is several times as fast as AES without its instructions.
        crypto.cipher_suites.sort_by_key(|one| one.suite() != CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    }
    let verifier = Pinned { token: token.clone(), algorithms: crypto.signature_verification_algorithms };
    let config = ClientConfig::builder_with_provider(Arc::new(crypto))
        .with_protocol_versions(&[&TLS13])
        .expect("the provider has TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    // The key decides who the server is; its name is not looked at.
    let name = ServerName::try_from("elephan").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name)
        .map_err(|error| Error::System("TLS", io::Error::other(error)))?;
    let socket = Socket::new(stream, patience).map_err(|error| Error::System("socket", error))?;
    let mut session = Session(Tls::Client(Box::new(StreamOwned::new(connection, socket))));
    let welcome: Welcome = session
        .send(&Greeting { protocol: PROTOCOL, secret: token.secret().to_vec() })
        .and_then(|()| session.receive("a welcome"))
        .map_err(|error| if matches!(error, Error::Closed) { Error::NotAdmitted } else { error })?;
    if welcome.protocol != PROTOCOL {
        let found = format!("version {}", welcome.protocol);
        return Err(Error::Protocol { expected: "the protocol's version 1", found });
    }
    if !welcome.admitted {
        return Err(Error::WrongToken);
    }
    session.set_patience(patience);
    Ok(session)
}

/// Whether the processor has instructions for AES.
fn has_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    false
}

impl Session {
    pub(crate) fn server(
        connection: ServerConnection,
        stream: TcpStream,
        patience: Duration,
    ) -> Result<Self, Error> {
        let socket = Socket::new(stream, patience).map_err(|error| Error::System("socket", error))?;
        Ok(Self(Tls::Server(Box::new(StreamOwned::new(connection, socket)))))
    }

    fn stream(&mut self) -> &mut dyn ReadWrite {
        match &mut self.0 {
            Tls::Client(stream) => stream,
            Tls::Server(stream) => stream,
        }
    }

    fn inner(&self) -> &Socket {
        match &self.0 {
            Tls::Client(stream) => &stream.sock,
            Tls::Server(stream) => &stream.sock,
        }
    }

    fn inner_mut(&mut self) -> &mut Socket {
        match &mut self.0 {
            Tls::Client(stream) => &mut stream.sock,
            Tls::Server(stream) => &mut stream.sock,
        }
    }

    /// Sets the time that each read or write, or a message that is received, may take from now on.
    pub fn set_patience(&mut self, patience: Duration) {
        self.inner_mut().admit(patience);
    }

    /// The TCP socket, for its options and its `TCP_INFO`. Who reads or writes it breaks the session.
    pub fn socket(&self) -> &TcpStream {
        self.inner().stream()
    }

    /// A secret that only both ends of this session can derive, for what goes beside it: datagrams, other connections.
    /// Different labels give independent secrets (RFC 8446, section 7.5).
    pub fn secret(&self, label: &str) -> [u8; 32] {
        let exported = match &self.0 {
            Tls::Client(stream) => stream.conn.export_keying_material([0; 32], label.as_bytes(), None),
            Tls::Server(stream) => stream.conn.export_keying_material([0; 32], label.as_bytes(), None),
        };
        exported.expect("the handshake is over")
    }

    /// Says what an error of reading or writing bytes means for the session.
    pub fn failed(&self, error: io::Error) -> Error {
        failed(error, self.inner().patience())
    }

    /// Sends a message, and flushes.
    pub fn send(&mut self, message: &impl Serialize) -> Result<(), Error> {
        let sent = message::write(&mut self.stream(), message);
        sent.map_err(|error| failed(error, self.inner().patience()))
    }

    /// Receives a message; `expected` says what it should be, for errors.
    pub fn receive<T: DeserializeOwned>(&mut self, expected: &'static str) -> Result<T, Error> {
        self.receive_at_most(expected, MOST_BYTES)
    }

    pub(crate) fn receive_at_most<T: DeserializeOwned>(
        &mut self,
        expected: &'static str,
        most: u32,
    ) -> Result<T, Error> {
        let before = self.inner_mut().limit();
        let found = message::read(&mut self.stream(), most);
        self.inner_mut().restore(before);
        found.map_err(|error| match failed(error, self.inner().patience()) {
            Error::Protocol { found, .. } => Error::Protocol { expected, found },
            error => error,
        })
    }
}

/// What both sides' streams are.
trait ReadWrite: Read + Write {}
impl<T: Read + Write> ReadWrite for T {}

impl Read for Session {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream().read(buffer)
    }
}

impl Write for Session {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.stream().flush()
    }
}

/// Says what an error of the socket, of TLS, or of a message means.
fn failed(error: io::Error, patience: Duration) -> Error {
    if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return match tls {
            rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure) => {
                Error::WrongToken
            }
            rustls::Error::AlertReceived(_) => Error::Closed,
            tls => Error::Protocol { expected: "TLS 1.3 with a raw public key", found: tls.to_string() },
        };
    }
    match error.kind() {
        io::ErrorKind::InvalidData => Error::Protocol { expected: "a message", found: error.to_string() },
        // A socket's time-out is one or the other, depending on the system.
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::Silent(patience.as_secs_f64()),
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionAborted => Error::Closed,
        _ => Error::System("session", error),
    }
}

/// Accepts the server whose public key has the token's fingerprint, and no other.
#[derive(Debug)]
struct Pinned {
    token: Token,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.token.is_of(key) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not offered".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
