//! What the parser reads, and refuses.

use elephan_packetdrill::parse;
use elephan_packetdrill::script::{Action, Directive, Ecn, Packet, TcpOption, Value, When, flags};
use proptest::collection::vec;
use proptest::prelude::*;

fn events(text: &str) -> Vec<elephan_packetdrill::script::Event> {
    parse(text, "test.pkt").expect("it can be read").events
}

fn packet(text: &str) -> Packet {
    match events(text).remove(0).action {
        Action::Arrives(packet) | Action::Sends(packet) => packet,
        other => panic!("{other:?}"),
    }
}

fn mistake(text: &str) -> String {
    parse(text, "test.pkt").expect_err("it cannot be read").to_string()
}

#[test]
fn times_are_absolute_relative_ranges_or_any() {
    let text = "0 > S 0:0(0)\n+.1 > S 0:0(0)\n+0.1~+2 > S 0:0(0)\n.5~1 > S 0:0(0)\n* > S 0:0(0)\n";
    let times: Vec<When> = events(text).iter().map(|event| event.when).collect();
    let expected = [
        When::At(0, 0),
        When::After(100_000, 100_000),
        When::After(100_000, 2_000_000),
        When::At(500_000, 1_000_000),
        When::Any,
    ];
    assert_eq!(times, expected);
}

#[test]
fn a_packet_has_flags_numbers_window_and_options() {
    let found = packet("+0 < [ce] FP. 1:1001(1000) ack 7 win 257 <sack 3:4 5:6,nop,nop,TS val 1 ecr 2>");
    let expected = Packet {
        ecn: Some(Ecn::Ce),
        flags: flags::FIN | flags::PSH | flags::ACK,
        seq: 1,
        len: 1000,
        ack: Some(7),
        window: Some(257),
        options: Some(vec![TcpOption::Sack(vec![(3, 4), (5, 6)]), TcpOption::Timestamps { val: 1, ecr: 2 }]),
    };
    assert_eq!(found, expected);
    assert_eq!(packet("+0 > - 1:1(0) <...>").options, None);
    assert_eq!(packet("+0 > . 1:1(0)").options, Some(Vec::new()));
    let syn = packet("+0 > SEW 0:0(0) <mss 1460,nop,wscale 7,sackOK>");
    assert_eq!(syn.flags, flags::SYN | flags::ECE | flags::CWR);
    assert_eq!(
        syn.options,
        Some(vec![TcpOption::Mss(1460), TcpOption::WindowScale(7), TcpOption::SackPermitted])
    );
}

#[test]
fn a_cookie_may_look_like_a_number() {
    let cookie = |text: &str| packet(&format!("+0 < S 0:0(0) <{text},nop,nop>")).options.unwrap().remove(0);
    let expected =
        |experimental, cookie: &[u8]| TcpOption::FastOpen { experimental, cookie: cookie.to_vec() };
    assert_eq!(cookie("FO"), expected(false, &[]));
    assert_eq!(cookie("FO 00345678"), expected(false, &[0, 0x34, 0x56, 0x78]));
    assert_eq!(cookie("FOEXP abcd"), expected(true, &[0xab, 0xcd]));
    assert_eq!(cookie("FO TFO_COOKIE"), expected(false, &[0x30, 0x21, 0xb9, 0xd8, 0x89, 0x01, 0x7e, 0xeb]));
    let odd = mistake("+0 < S 0:0(0) <FO abc>");
    assert!(odd.contains("expected a cookie of at most 36 bytes in hexadecimal, found \"abc\""), "{odd}");
}

#[test]
fn sequence_numbers_wrap() {
    assert_eq!(packet("+0 > . 4294967295:0(1) ack 1").seq, u32::MAX);
}

#[test]
fn a_call_has_arguments_a_result_and_an_end() {
    let events = events(
        "0...0.2 connect(3, {sa_family = AF_INET, sin_port = htons(8080), sin_addr = inet_addr(\"1.2.3.4\")}, 16) = -1 EAGAIN (Try again)\n\
         +0 setsockopt(3, SOL_TCP, TCP_CONGESTION, \"re\" \"no\", 4) = 0\n\
         +0 fcntl(3, F_GETFL) = 0x2 (flags O_RDWR)\n\
         +0 poll([{fd=3, events=POLLIN|POLLOUT, revents=0}], 1, 0) = 0\n",
    );
    let calls: Vec<_> = events
        .into_iter()
        .map(|event| match event.action {
            Action::Call(call) => call,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!((calls[0].name.as_str(), calls[0].ends), ("connect", Some(200_000)));
    assert_eq!((&calls[0].result, calls[0].error.as_deref()), (&Value::Number(-1), Some("EAGAIN")));
    assert_eq!(calls[1].arguments[3], Value::Text("reno".to_owned()));
    assert_eq!(calls[2].result, Value::Number(2));
    assert!(matches!(&calls[3].arguments[0], Value::List(items) if items.len() == 1));
}

#[test]
fn comments_are_skipped_and_directives_read() {
    let script = parse(
        "--tolerance_usecs=10000 // a comment\n\
         // elephan: tcp.rack=true, cc=cubic\n/* over\nlines */\n// elephan: kernel differs: it does\n\
         `sysctl -q net.ipv4.tcp_sack=0\nsysctl a=b`\n+0 %{ assert tcpi_snd_cwnd == 10 }%\n",
        "test.pkt",
    )
    .expect("it can be read");
    assert_eq!(script.options[0].value, "10000");
    let set = |key: &str, value: &str| Directive::Set(key.to_owned(), value.to_owned());
    let expected =
        [set("tcp.rack", "true"), set("cc", "cubic"), Directive::KernelDiffers("it does".to_owned())];
    assert_eq!(script.directives, expected);
    assert_eq!(script.events[0].line, 6);
    assert_eq!(script.events[1].action, Action::Code("assert tcpi_snd_cwnd == 10".to_owned()));
    assert_eq!(
        (script.events[1].line, script.events[1].text.as_str()),
        (8, "+0 %{ assert tcpi_snd_cwnd == 10 }%")
    );
}

#[test]
fn defined_words_are_replaced() {
    let events = events("--define=CC=\"reno\"\n0 setsockopt(3, SOL_TCP, TCP_CONGESTION, CC, 4) = 0");
    assert!(
        matches!(&events[0].action, Action::Call(call) if call.arguments[3] == Value::Text("reno".to_owned()))
    );
}

#[test]
fn what_other_packets_are_is_named() {
    for (text, name) in [
        ("+0 < icmp unreachable frag_needed mtu 1200 [1:1461(1460)]\n+0 > . 1:1(0)", "icmp packets"),
        ("+0 > udp (1000)\n+0 > . 1:1(0)", "udp packets"),
        ("+0 < encap psp (spi 1) . 1:1(0)\n+0 > . 1:1(0)", "encap packets"),
        ("+0 > (flowlabel 0x1) . 1:1(0)\n+0 > . 1:1(0)", "flowlabel of a packet"),
        ("+0 > SEWA 0:0(0)\n+0 > . 1:1(0)", "AccECN"),
        ("+0 > 8080 > 40000 S 0:0(0)\n+0 > . 1:1(0)", "ports of a packet"),
    ] {
        let events = events(text);
        assert_eq!(events.len(), 2, "{text}");
        assert_eq!(events[0].action, Action::Unsupported(name.to_owned()));
    }
}

#[test]
fn a_mistake_names_line_expected_and_found() {
    for (text, says) in [
        ("0 > S 0:0(0) <mss>", "line 1: expected a whole number from 0 to 65535, found \">\""),
        ("\n\n0 > S 0:0(1)", "line 3: expected 0:1(1), whose numbers agree, found 0:0(1)"),
        ("+1~+.5 > S 0:0(0)", "line 1: expected a range whose end is not before its beginning"),
        ("0~1 < S 0:0(0)", "line 1: expected one time, because only packets that are sent have a range"),
        ("1...0.5 accept(3, ..., ...) = 4", "line 1: expected a call that returns after it begins"),
        ("0 < S 0:0(0) <...>", "line 1: expected the options of a packet that arrives, found \"...\""),
        ("0 socket(", "line 1: expected a value, found the end of the script"),
        ("/* never", "line 1: expected */, found the end of the script"),
        ("+0 %{ assert", "line 1: expected }%, found the end of the script"),
        ("-1 > S 0:0(0)", "line 1: expected a time from 0 to 5000000 s, found \"-1\""),
        ("--define=X\n0 > S 0:0(0)", "line 1: expected --define=WORD=VALUE, found X"),
    ] {
        let found = mistake(text);
        assert!(found.starts_with("test.pkt: ") && found.contains(says), "{text:?}: {found}");
        assert_eq!(found.lines().count(), 1);
    }
    assert!(mistake(&"[".repeat(100_000)).contains("expected a time"));
    assert!(mistake(&format!("0 f({}", "[".repeat(100_000))).contains("not so deep"));
}

/// The parser lives through these bytes.
fn reads_bytes(bytes: &[u8]) {
    let _ = parse(&String::from_utf8_lossy(bytes), "fuzz");
}

/// The parser lives through a script, a part of which is replaced by a text.
fn reads_damaged((at, length, text): &(u8, u8, String)) {
    const WHOLE: &str = "--define=A=1\n`sysctl -q a=b`\n0...0.2 socket(..., SOCK_STREAM|B, {a = f(1), [2]}) = 3 E (no)\n\
        +.1~+.2 > [ect0] FP. 1:2(1) ack 3 win 4 <sack 1:2 3:4,TS val 1 ecr 2,mss 5>\n* > - 1:1(0) <...>\n+0 %{ a }%\n";
    let begin = usize::from(*at).min(WHOLE.len());
    let end = (begin + usize::from(*length)).min(WHOLE.len());
    let _ = parse(&format!("{}{text}{}", &WHOLE[..begin], &WHOLE[end..]), "fuzz");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn no_bytes_make_the_parser_panic(bytes in vec(any::<u8>(), 0..1000)) {
        reads_bytes(&bytes);
    }

    #[test]
    fn no_damage_to_a_script_makes_the_parser_panic(case in (any::<u8>(), any::<u8>(), any::<String>())) {
        reads_damaged(&case);
    }
}

#[test]
#[ignore = "fresh seeds"]
fn no_other_bytes_make_the_parser_panic() {
    bolero::check!().for_each(reads_bytes);
}

#[test]
#[ignore = "fresh seeds"]
fn no_other_damage_to_a_script_makes_the_parser_panic() {
    bolero::check!().with_type().for_each(reads_damaged);
}
