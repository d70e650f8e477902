//! Both ends on loopback: who is admitted, and what strangers and silent peers can do.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use proptest::prelude::*;

use crate::{Error, Identity, MOST_BYTES, Session, Token, connect, message};

/// No test of the gate ends by it.
const PATIENCE: Duration = Duration::from_hours(1000);
const SHORT: Duration = Duration::from_millis(200);

/// A server that admits one client with this patience, and then does `work`.
fn server<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce(Result<Session, Error>) -> T + Send + 'static,
) -> (SocketAddr, Token, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("its address");
    let identity = Identity::new();
    let token = identity.token().clone();
    let thread = thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a client");
        work(identity.accept(stream, patience))
    });
    (at, token, thread)
}

#[test]
fn who_has_the_token_is_admitted_and_both_derive_the_same_secrets() {
    let (at, token, thread) = server(PATIENCE, |session| {
        let mut session = session.expect("it has the token");
        let text: String = session.receive("a text").expect("it came");
        session.send(&text.len()).expect("it goes");
        let mut bytes = vec![0; 100_000];
        session.read_exact(&mut bytes).expect("all of them");
        (bytes.iter().all(|&byte| byte == 7), session.secret("one"), session.secret("two"))
    });
    let mut session =
        connect(at, &token.to_string().parse().expect("its text"), PATIENCE).expect("a session");
    session.send(&"twelve bytes".to_owned()).expect("it goes");
    let length: usize = session.receive("a length").expect("it came");
    assert_eq!(length, 12);
    session.write_all(&vec![7; 100_000]).and_then(|()| session.flush()).expect("they go");
    let (all, one, two) = thread.join().expect("no panic");
    assert!(all);
    assert_eq!((session.secret("one"), session.secret("two")), (one, two));
    assert_ne!(one, two);
}

#[test]
fn a_token_of_another_server_is_refused_by_the_client_before_it_tells_the_secret() {
    let (at, _, thread) = server(PATIENCE, Result::err);
    let other = Identity::new().token().clone();
    assert!(matches!(connect(at, &other, PATIENCE), Err(Error::WrongToken)));
    assert!(matches!(thread.join().expect("no panic"), Some(Error::Closed)));
}

#[test]
fn a_wrong_secret_is_refused_by_the_server() {
    let (at, token, thread) = server(PATIENCE, Result::err);
    let mut text = token.to_string();
    // The secret is at the end.
    let last = if text.pop() == Some('A') { 'E' } else { 'A' };
    text.push(last);
    let wrong = text.parse().expect("a token");
    assert!(matches!(connect(at, &wrong, PATIENCE), Err(Error::WrongToken)));
    assert!(matches!(thread.join().expect("no panic"), Some(Error::WrongToken)));
}

#[test]
#[ignore = "real time"]
fn a_stranger_who_drips_bytes_is_left_after_the_patience() {
    let (at, _, thread) = server(SHORT, Result::err);
    let mut stranger = TcpStream::connect(at).expect("a connection");
    // The start of a record of TLS, a byte at a time.
    let record = [22, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3];
    let mut bytes = record.iter().chain(std::iter::repeat(&0));
    while !thread.is_finished() {
        let _ = stranger.write_all(&[*bytes.next().expect("no end")]);
        thread::sleep(Duration::from_millis(20));
    }
    assert!(matches!(thread.join().expect("no panic"), Some(Error::Silent(_))));
}

#[test]
#[ignore = "real time"]
fn a_silent_peer_is_noticed_and_so_is_a_closed_session() {
    let (at, token, thread) = server(PATIENCE, |session| {
        let mut session = session.expect("admitted");
        session.set_patience(SHORT);
        let silent = session.receive::<u8>("a number").err();
        session.set_patience(PATIENCE);
        (silent, session.receive::<u8>("a number").err())
    });
    let session = connect(at, &token, PATIENCE).expect("a session");
    thread::sleep(SHORT * 3);
    drop(session);
    let (silent, closed) = thread.join().expect("no panic");
    assert!(matches!(silent, Some(Error::Silent(_))), "{silent:?}");
    assert!(matches!(closed, Some(Error::Closed)), "{closed:?}");
}

#[test]
fn a_token_shows_its_secret_only_as_text() {
    let token = Identity::new().token().clone();
    assert!(!format!("{token:?}").contains("secret:"));
    assert_eq!(token.to_string().len(), 47);
    let found = "el2_abc".parse::<Token>().err().map(|error| error.to_string());
    assert_eq!(
        found.as_deref(),
        Some("token: expected the text that the server printed when it started, which starts with el1_")
    );
}

proptest! {
    #[test]
    fn any_text_is_a_token_or_an_error(text in ".{0,80}") {
        if let Ok(token) = text.parse::<Token>() {
            prop_assert_eq!(token.to_string(), text.trim());
        }
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = message::read::<(u8, String)>(&mut &bytes[..], MOST_BYTES);
        let framed = [&(bytes.len() as u32).to_be_bytes()[..], &bytes].concat();
        let _ = message::read::<(u8, String)>(&mut &framed[..], MOST_BYTES);
    }

    #[test]
    fn messages_come_back(number: u64, text in ".{0,40}") {
        let mut bytes = Vec::new();
        message::write(&mut bytes, &(number, text.clone())).expect("a vector takes it");
        prop_assert_eq!(message::read::<(u64, String)>(&mut &bytes[..], MOST_BYTES).expect("a message"), (number, text));
    }

    #[test]
    fn bytes_of_strangers_never_panic_a_server(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let (at, _, thread) = server(PATIENCE, Result::err);
        let mut stranger = TcpStream::connect(at).expect("a connection");
        let _ = stranger.write_all(&bytes);
        drop(stranger);
        prop_assert!(thread.join().expect("no panic").is_some());
    }
}
