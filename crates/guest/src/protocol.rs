//! Messages between the host and the guest: MessagePack, each after its length in four bytes.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use elephan_linux::Measured;
use elephan_packetdrill::Done;
use elephan_packetdrill::script::Script;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Maximum length of a message: beyond this it is rubbish.
const LONGEST: usize = 1 << 31;

/// What the guest is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Job {
    /// Run a scenario.
    Run(Run),
    /// Run a script of packetdrill. The host answers each [`Report::Judge`] by a [`Judgement`](elephan_packetdrill::Judgement).
    Script(Script),
}

/// A scenario and its algorithms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The scenario (JSON).
    pub scenario: String,
    /// The kernel's name of each flow's congestion control.
    pub algorithms: Vec<String>,
    /// Algorithms of `kernel/` with other parameters than the published ones.
    pub loads: Vec<Load>,
}

/// An algorithm of `kernel/` with other parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The name of its file.
    pub name: String,
    /// The kernel's name of it.
    pub registered: String,
    /// The values of its table of parameters, in fixed point.
    pub values: Vec<u64>,
}

/// What the guest tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Report {
    /// The share of the run that is done.
    Progress(f64),
    /// The run has ended: its results.
    Done(Box<Measured>),
    /// Code of a script, which the host is to judge, and the values of its variables.
    Judge(String, BTreeMap<String, i64>),
    /// The script has ended: its results.
    Ran(Done),
    /// The job could not be carried out: why.
    Failed(String),
}

/// Writes a message.
pub fn send<T: Serialize>(mut to: impl Write, message: &T) -> io::Result<()> {
    let bytes = rmp_serde::to_vec_named(message).map_err(io::Error::other)?;
    to.write_all(&(bytes.len() as u32).to_le_bytes())?;
    to.write_all(&bytes)
}

/// Reads a message.
pub fn receive<T: DeserializeOwned>(mut from: impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST {
        return Err(io::Error::other(format!(
            "expected a message of at most {LONGEST} bytes, found {length}"
        )));
    }
    let mut bytes = Vec::new();
    from.take(length as u64).read_to_end(&mut bytes)?;
    rmp_serde::from_slice(&bytes).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use elephan_packetdrill::{Judgement, parse, script};

    use super::*;

    fn passed_on<T: Serialize + DeserializeOwned>(message: &T) -> T {
        let mut bytes = Vec::new();
        send(&mut bytes, message).unwrap();
        receive(&bytes[..]).unwrap()
    }

    #[test]
    fn a_script_and_its_results_survive_the_way() {
        const TEXT: &str = "--tolerance_usecs=7\n// elephan: cc=cubic\n`sysctl -q net.ipv4.tcp_sack=0; ip route change x dev y initcwnd 4`\n\
            0...0.2 connect(3, {sa_family = AF_INET}, [1, \"x\", A|B]) = -1 E (no)\n+0 %{ a }%\n\
            +.1~+.2 > [ect0] FP. 1:2(1) ack 3 win 4 <sack 1:2,TS val 1 ecr 2,mss 5,wscale 1,sackOK,FO abcd>\n* > - 1:1(0) <...>\n\
            1 < icmp unreachable [1:2(1)]\n";
        let script = parse(TEXT, "test.pkt").unwrap();
        assert_eq!(script.events.len(), 6);
        let Job::Script(received) = passed_on(&Job::Script(script.clone())) else { panic!("another job") };
        assert_eq!(received, script);
        let set = script::Action::Set(vec![
            script::Setting::Sysctl("net.ipv4.tcp_sack".to_owned(), "0".to_owned()),
            script::Setting::InitialWindow(4),
        ]);
        assert_eq!(received.events[0].action, set);
        let failed = elephan_packetdrill::Report::Failed {
            line: 3,
            text: "+0 > .".to_owned(),
            expected: "a".to_owned(),
            seen: "b".to_owned(),
        };
        for report in [failed, elephan_packetdrill::Report::Passed] {
            let done = Done { report, ignored: vec!["net.ipv4.tcp_nothing=1".to_owned()] };
            let Report::Ran(received) = passed_on(&Report::Ran(done.clone())) else {
                panic!("another report")
            };
            assert_eq!(received, done);
        }
        assert_eq!(passed_on(&Judgement::Fails("no".to_owned())), Judgement::Fails("no".to_owned()));
    }
}
