//! Scripts of any content never make the simulated stack panic, and never run for ever.

use bolero::TypeGenerator;
use bolero::generator::bolero_generator::driver::{ByteSliceDriver, Options};
use elephan_packetdrill::{Judgement, Report, Stop, parse};
use proptest::collection::vec;
use proptest::prelude::*;

/// Drawn bytes of a script.
const BYTES: usize = 2048;

/// An event of a script.
#[derive(Clone, Debug, TypeGenerator)]
enum Line {
    Arrives { ms: u8, flags: u8, seq: u16, len: u16, ack: u16, window: u16, sack: (u16, u16) },
    Sent,
    Write(u32),
    Read(u16),
    Close(bool),
    Code,
    Wait(u16),
}

fn text(line: &Line) -> String {
    match line {
        Line::Arrives { ms, flags, seq, len, ack, window, sack: (left, right) } => {
            let flags = [".", "P.", "F.", "S", "S.", "R", "R.", "E.", "W.", "-"][usize::from(*flags) % 10];
            let (seq, len, end) = (u32::from(*seq), u32::from(*len), u32::from(*seq) + u32::from(*len));
            format!(
                "+.{ms:03} < {flags} {seq}:{end}({len}) ack {ack} win {window} <sack {left}:{right},TS val {seq} ecr 0>"
            )
        }
        Line::Sent => "* > . 1:1(0) ack 1 <...>".to_owned(),
        Line::Write(bytes) => format!("+0 write(4, ..., {bytes}) = {bytes}"),
        Line::Read(bytes) => format!("+0...1 read(4, ..., {bytes}) = {bytes}"),
        Line::Close(true) => "+0 close(4) = 0".to_owned(),
        Line::Close(false) => "+0 shutdown(4, SHUT_WR) = 0".to_owned(),
        Line::Code => "+0 %{ x }%".to_owned(),
        Line::Wait(seconds) => format!("+{seconds} `sysctl -q net.ipv4.tcp_syncookies=1`"),
    }
}

fn simulate(text: &str) -> Result<Report, Stop> {
    let script = parse(text, "test.pkt").expect("it can be read");
    elephan_packetdrill::simulate(&script, &Vec::new(), &mut |_, _| Judgement::Holds).map(|done| done.report)
}

const OPENING: &str = "// elephan: tcp.ecn=true\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 listen(3, 1) = 0\n\
    +0 < S 0:0(0) win 65535 <mss 1000,sackOK,wscale 7,TS val 1 ecr 0>\n* > S. 0:0(0) ack 1 <...>\n\
    +.1 < . 1:1(0) ack 1 win 1000 <TS val 2 ecr 0>\n+0 accept(3, ..., ...) = 4\n";

/// The simulated stack lives through a script of these lines.
fn survives((opens, lines): &(bool, Vec<Line>)) {
    let lines: Vec<String> = lines.iter().map(text).collect();
    let _ = simulate(&format!("{}{}", if *opens { OPENING } else { "" }, lines.join("\n")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn no_script_makes_the_simulator_panic(bytes in vec(any::<u8>(), BYTES)) {
        let mut driver = ByteSliceDriver::new(&bytes, &Options::default());
        survives(&TypeGenerator::generate(&mut driver).expect("any bytes are a script"));
    }
}

#[test]
#[ignore = "fresh seeds"]
fn no_other_script_makes_the_simulator_panic() {
    bolero::check!().with_type().for_each(survives);
}

#[test]
fn a_script_that_never_ends_is_refused() {
    let wait = "+5000000 `true`\n".repeat(3);
    let Ok(Report::Failed { line, expected, .. }) = simulate(&wait) else { panic!("it ends") };
    assert_eq!((line, expected.as_str()), (3, "a script of at most 10000000.000000 s"));
}

#[test]
fn a_blocked_call_returns_when_it_can() {
    let data = "+0...0.05 read(4, ..., 1000) = 500\n+.05 < P. 1:501(500) ack 1 win 1000 <TS val 3 ecr 0>\n";
    assert_eq!(simulate(&format!("{OPENING}{data}")).expect("it runs"), Report::Passed);
    let late = data.replace("0.05 read", "0.02 read");
    let Ok(Report::Failed { line, expected, .. }) = simulate(&format!("{OPENING}{late}")) else {
        panic!("it is late")
    };
    assert_eq!((line, expected.as_str()), (9, "line 8, read: = 500 at 0.120000 s"));
}
