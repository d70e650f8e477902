//! The grammar of packetdrill (Cardwell et al., USENIX ATC 2013), by recursive descent.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use elephan_scenario::{Error, Mistake};

use crate::lexer::{self, Kind, Problem, Token};
use crate::run::{Options, Stop};
use crate::script::{Action, Call, Ecn, Event, Packet, Script, ScriptOption, TcpOption, Value, When, flags};
use crate::settings;

/// Longest time in a script, s.
const LONGEST_S: f64 = 5e6;
/// What packetdrill's own runner defines for IPv4 (its run_all.py): the cookie is that of its addresses and its `tcp_fastopen_key`.
const DEFINED: [(&str, &str); 4] = [
    ("TFO_COOKIE", "3021b9d889017eeb"),
    ("CODE", "host_unreachable"),
    ("CMSG_LEVEL_IP", "SOL_IP"),
    ("CMSG_TYPE_RECVERR", "IP_RECVERR"),
];
/// Bytes of a cookie that fit into the options of a header.
const MOST_COOKIE: usize = 36;
/// Lists within lists.
const DEEPEST: u32 = 32;
/// What begins the description of a packet that is not TCP over IPv4 alone.
const OTHER_PACKETS: [&str; 9] = ["icmp", "udp", "ipv4", "ipv6", "gre", "GREv0", "mpls", "raw", "encap"];

type Parsed<T> = Result<T, Problem>;

/// Reads a script; `file` is what errors call it. Files of commands that it names are read beside it.
pub fn parse(text: &str, file: &str) -> Result<Script, Error> {
    read(text, file).map_err(|Problem { line, expected, found }| {
        let mistake = Mistake::new(format!("line {line}"), expected, found);
        Error { file: file.to_owned(), mistakes: vec![mistake] }
    })
}

fn read(text: &str, file: &str) -> Parsed<Script> {
    let (tokens, directives) = lexer::read(text)?;
    let folder = Path::new(file).parent().unwrap_or(Path::new("")).to_owned();
    let mut parser = Parser { text, folder, tokens, at: 0, depth: 0 };
    let options = parser.options();
    if let Err((line, Stop::Fail(expected, found))) = Options::new(&options) {
        return Err(Problem { line, expected, found });
    }
    parser.substitute(&options)?;
    let events = parser.events()?;
    Ok(Script { file: file.to_owned(), options, directives, events })
}

struct Parser<'a> {
    text: &'a str,
    /// Where the script is.
    folder: PathBuf,
    tokens: Vec<Token>,
    at: usize,
    depth: u32,
}

impl Parser<'_> {
    fn peek(&self) -> &Kind {
        &self.tokens[self.at].kind
    }

    fn after(&self) -> &Kind {
        self.tokens.get(self.at + 1).map_or(&Kind::End, |token| &token.kind)
    }

    fn line(&self) -> u32 {
        self.tokens[self.at].line
    }

    fn next(&mut self) -> Kind {
        let kind = self.tokens[self.at].kind.clone();
        // The last word is the end, and stays.
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        kind
    }

    /// Takes the symbol if it comes next.
    fn takes(&mut self, symbol: char) -> bool {
        let comes = *self.peek() == Kind::Symbol(symbol);
        if comes {
            self.next();
        }
        comes
    }

    fn expect(&mut self, symbol: char) -> Parsed<()> {
        if self.takes(symbol) { Ok(()) } else { self.fail(&format!("\"{symbol}\"")) }
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let comes = matches!(self.peek(), Kind::Word(found) if found == word);
        if comes {
            self.next();
        }
        comes
    }

    fn fail<T>(&self, expected: &str) -> Parsed<T> {
        let token = &self.tokens[self.at];
        let found = match &token.kind {
            Kind::End => "the end of the script".to_owned(),
            _ => format!("\"{}\"", &self.text[token.span.0..token.span.1]),
        };
        Err(Problem { line: token.line, expected: expected.to_owned(), found })
    }

    // ---- Options ----

    fn options(&mut self) -> Vec<ScriptOption> {
        let mut options = Vec::new();
        while let Kind::Option(name) = self.peek().clone() {
            let line = self.line();
            self.next();
            let mut value = String::new();
            if self.takes('=') {
                let begin = self.tokens[self.at].span.0;
                let mut end = begin;
                while self.line() == line && *self.peek() != Kind::End {
                    end = self.tokens[self.at].span.1;
                    self.next();
                }
                let found = &self.text[begin..end];
                let quoted = found.strip_prefix('"').and_then(|found| found.strip_suffix('"'));
                quoted.unwrap_or(found).clone_into(&mut value);
            }
            options.push(ScriptOption { line, name, value });
        }
        options
    }

    /// Replaces the words that `--define=WORD=VALUE` defines.
    fn substitute(&mut self, options: &[ScriptOption]) -> Parsed<()> {
        let mut defined: HashMap<String, Kind> = DEFINED
            .iter()
            .map(|(word, value)| ((*word).to_owned(), Kind::Word((*value).to_owned())))
            .collect();
        for option in options.iter().filter(|option| option.name == "define") {
            let Some((word, value)) = option.value.split_once('=') else {
                let expected = "--define=WORD=VALUE".to_owned();
                return Err(Problem { line: option.line, expected, found: option.value.clone() });
            };
            let (kinds, _) =
                lexer::read(value).map_err(|problem| Problem { line: option.line, ..problem })?;
            defined.insert(word.trim().to_owned(), kinds[0].kind.clone());
        }
        for token in &mut self.tokens {
            if let Kind::Word(word) = &token.kind
                && let Some(kind) = defined.get(word)
            {
                token.kind = kind.clone();
            }
        }
        Ok(())
    }

    // ---- Events ----

    fn events(&mut self) -> Parsed<Vec<Event>> {
        let mut events = Vec::new();
        while *self.peek() != Kind::End {
            let begin = self.at;
            let line = self.line();
            // A command before the first event and one after the last have no time.
            let when = match self.peek() {
                Kind::Command(_) => When::After(0, 0),
                _ => self.when()?,
            };
            let action = self.action()?;
            check(line, when, &action)?;
            let span = self.tokens[begin].span.0..self.tokens[self.at.max(begin + 1) - 1].span.1;
            let text = self.text[span].split_whitespace().collect::<Vec<_>>().join(" ");
            events.push(Event { line, when, action, text });
        }
        Ok(events)
    }

    fn when(&mut self) -> Parsed<When> {
        if self.takes('*') {
            return Ok(When::Any);
        }
        let is_relative = self.takes('+');
        let line = self.line();
        let from = self.time("a time such as +0.1, or \"*\"")?;
        let mut to = from;
        if self.takes('~') {
            if is_relative {
                self.expect('+')?;
            }
            to = self.time("a time")?;
            if to < from {
                let (expected, found) = ("a range whose end is not before its beginning", "one that is");
                return Err(Problem { line, expected: expected.to_owned(), found: found.to_owned() });
            }
        }
        Ok(if is_relative { When::After(from, to) } else { When::At(from, to) })
    }

    /// A time, in microseconds.
    fn time(&mut self, expected: &str) -> Parsed<u64> {
        let seconds = match *self.peek() {
            Kind::Integer(seconds) => seconds as f64,
            Kind::Float(seconds) => seconds,
            _ => return self.fail(expected),
        };
        if !(0.0..=LONGEST_S).contains(&seconds) {
            return self.fail("a time from 0 to 5000000 s");
        }
        self.next();
        Ok((seconds * 1e6).round() as u64)
    }

    fn action(&mut self) -> Parsed<Action> {
        match self.peek().clone() {
            Kind::Symbol('<') => self.packet(false),
            Kind::Symbol('>') => self.packet(true),
            Kind::Command(command) => {
                self.next();
                Ok(match settings::of_command(&command, &self.folder) {
                    Ok(settings) => Action::Set(settings),
                    Err(name) => Action::Unsupported(name),
                })
            }
            Kind::Code(code) => {
                self.next();
                Ok(Action::Code(code))
            }
            Kind::Word(_) | Kind::Ellipsis => self.call().map(Action::Call),
            _ => self
                .fail("a packet (\"<\" or \">\"), a system call, a command in backticks, or code in %{ }%"),
        }
    }

    // ---- Packets ----

    fn packet(&mut self, is_sent: bool) -> Parsed<Action> {
        let line = self.line();
        self.next();
        let mut unsupported = None;
        let mut ecn = None;
        if let Kind::Symbol(open @ ('[' | '(')) = *self.peek() {
            self.next();
            let close = if open == '[' { ']' } else { ')' };
            match self.next() {
                Kind::Word(word) => match word.as_str() {
                    "noecn" => ecn = Some(Ecn::None),
                    "ect0" => ecn = Some(Ecn::Ect0),
                    "ect1" => ecn = Some(Ecn::Ect1),
                    "ect01" if is_sent => ecn = Some(Ecn::Ect01),
                    "ce" => ecn = Some(Ecn::Ce),
                    other => unsupported = Some(format!("{other} of a packet")),
                },
                _ => {
                    return self
                        .fail("noecn, ect0, ect1, ect01 (of sent packets), ce, tos, ttl or flowlabel");
                }
            }
            while unsupported.is_some() && ![Kind::End, Kind::Symbol(close)].contains(self.peek()) {
                self.next();
            }
            self.expect(close)?;
        }
        match self.peek().clone() {
            Kind::Word(word) if OTHER_PACKETS.contains(&word.as_str()) => {
                unsupported = Some(format!("{word} packets"));
            }
            Kind::Integer(_) => unsupported = Some("ports of a packet".to_owned()),
            _ => {}
        }
        if let Some(name) = unsupported {
            while self.line() == line && *self.peek() != Kind::End {
                self.next();
            }
            return Ok(Action::Unsupported(name));
        }
        let Some(flags) = self.flags()? else {
            while self.line() == line && *self.peek() != Kind::End {
                self.next();
            }
            return Ok(Action::Unsupported("AccECN".to_owned()));
        };
        let (seq, len) = self.sequence()?;
        let ack = if self.takes_word("ack") { Some(self.below(1 << 32)? as u32) } else { None };
        let window = if self.takes_word("win") { Some(self.below(1 << 16)? as u16) } else { None };
        if self.takes_word("urg") {
            self.below(1 << 16)?;
            return Ok(Action::Unsupported("the urgent pointer".to_owned()));
        }
        let options = self.tcp_options(is_sent)?;
        let packet = Packet { ecn, flags, seq, len, ack, window, options };
        Ok(if is_sent { Action::Sends(packet) } else { Action::Arrives(packet) })
    }

    /// The flags; `None` for those of AccECN.
    fn flags(&mut self) -> Parsed<Option<u8>> {
        let mut found = 0;
        if self.takes('-') {
            return Ok(Some(0));
        }
        if let Kind::Word(word) = self.peek().clone() {
            for letter in word.chars() {
                match flags::LETTERS.iter().find(|(known, _)| *known == letter) {
                    Some((_, bit)) => found |= bit,
                    None if letter == 'A' || letter.is_ascii_digit() => return Ok(None),
                    None => {
                        return self.fail("flags, of the letters S F R P U E W and \".\", or \"-\" for none");
                    }
                }
            }
            self.next();
        } else if !matches!(self.peek(), Kind::Symbol('.') | Kind::Float(_)) {
            return self.fail("flags, of the letters S F R P U E W and \".\", or \"-\" for none");
        }
        if matches!(self.peek(), Kind::Float(_)) {
            return Ok(None);
        }
        if self.takes('.') {
            found |= flags::ACK;
        }
        Ok(Some(found))
    }

    /// `FIRST:END(LENGTH)`.
    fn sequence(&mut self) -> Parsed<(u32, u32)> {
        let seq = self.below(1 << 32)?;
        self.expect(':')?;
        let line = self.line();
        let end = self.below(1 << 32)?;
        self.expect('(')?;
        let len = self.below(1 << 16)?;
        self.expect(')')?;
        if (seq + len) & 0xffff_ffff != end {
            let expected = format!("{seq}:{}({len}), whose numbers agree", (seq + len) & 0xffff_ffff);
            return Err(Problem { line, expected, found: format!("{seq}:{end}({len})") });
        }
        Ok((seq as u32, len as u32))
    }

    /// A whole number from 0 to below `limit`.
    fn below(&mut self, limit: i64) -> Parsed<i64> {
        match *self.peek() {
            Kind::Integer(number) if (0..limit).contains(&number) => {
                self.next();
                Ok(number)
            }
            _ => self.fail(&format!("a whole number from 0 to {}", limit - 1)),
        }
    }

    fn tcp_options(&mut self, is_sent: bool) -> Parsed<Option<Vec<TcpOption>>> {
        let mut options = Vec::new();
        // A next event cannot begin with "<".
        if !self.takes('<') {
            return Ok(Some(options));
        }
        if *self.peek() == Kind::Ellipsis {
            if !is_sent {
                return self.fail("the options of a packet that arrives");
            }
            self.next();
            self.expect('>')?;
            return Ok(None);
        }
        loop {
            options.extend(self.tcp_option()?);
            if self.takes('>') {
                return Ok(Some(options));
            }
            if !self.takes(',') {
                return self.fail("\",\" or \">\"");
            }
        }
    }

    /// An option; `None` for padding.
    fn tcp_option(&mut self) -> Parsed<Option<TcpOption>> {
        let Kind::Word(name) = self.peek().clone() else { return self.fail("the name of a TCP option") };
        self.next();
        let option = match name.as_str() {
            "nop" | "eol" => return Ok(None),
            // A word that the caller of packetdrill has to define.
            "mss" if matches!(self.peek(), Kind::Word(_)) => {
                let Kind::Word(word) = self.next() else { unreachable!("it is a word") };
                TcpOption::Other(format!("mss {word}"))
            }
            "mss" => TcpOption::Mss(self.below(1 << 16)? as u16),
            "wscale" => TcpOption::WindowScale(self.below(1 << 8)? as u8),
            "sackOK" => TcpOption::SackPermitted,
            "TS" => {
                let (mut val, mut ecr) = (0, 0);
                for (word, value) in [("val", &mut val), ("ecr", &mut ecr)] {
                    if !self.takes_word(word) {
                        return self.fail(&format!("\"{word}\""));
                    }
                    *value = self.below(1 << 32)? as u32;
                }
                TcpOption::Timestamps { val, ecr }
            }
            "sack" => {
                let mut blocks = Vec::new();
                while blocks.is_empty() || matches!(self.peek(), Kind::Integer(_)) {
                    let left = self.below(1 << 32)? as u32;
                    self.expect(':')?;
                    blocks.push((left, self.below(1 << 32)? as u32));
                }
                TcpOption::Sack(blocks)
            }
            "FO" | "FOEXP" => TcpOption::FastOpen { experimental: name == "FOEXP", cookie: self.cookie()? },
            "md5" | "ECN" => {
                while ![Kind::Symbol(','), Kind::Symbol('>'), Kind::End].contains(self.peek()) {
                    self.next();
                }
                TcpOption::Other(name)
            }
            _ => {
                self.at -= 1;
                return self
                    .fail("one of the TCP options mss, wscale, sackOK, sack, TS, nop, eol, FO, FOEXP, md5");
            }
        };
        Ok(Some(option))
    }

    /// A cookie in hexadecimal digits, which may look like a number; empty if there is none.
    fn cookie(&mut self) -> Parsed<Vec<u8>> {
        let digits = match self.peek() {
            Kind::Word(word) => word.clone(),
            Kind::Integer(_) => {
                let (begin, end) = self.tokens[self.at].span;
                self.text[begin..end].to_owned()
            }
            _ => return Ok(Vec::new()),
        };
        let pairs = digits.as_bytes().chunks(2).map(|pair| {
            let text = str::from_utf8(pair).ok().filter(|_| pair.len() == 2)?;
            u8::from_str_radix(text, 16).ok()
        });
        match pairs.collect::<Option<Vec<u8>>>().filter(|cookie| cookie.len() <= MOST_COOKIE) {
            Some(cookie) => {
                self.next();
                Ok(cookie)
            }
            None => self.fail("a cookie of at most 36 bytes in hexadecimal"),
        }
    }

    // ---- System calls ----

    fn call(&mut self) -> Parsed<Call> {
        let mut ends = None;
        if *self.peek() == Kind::Ellipsis {
            self.next();
            ends = Some(self.time("the time when the call returns")?);
        }
        let Kind::Word(name) = self.peek().clone() else { return self.fail("the name of a system call") };
        self.next();
        self.expect('(')?;
        let arguments = self.values(')')?;
        self.expect('=')?;
        let result = self.value()?;
        let mut error = None;
        if let Kind::Word(word) = self.peek().clone() {
            self.next();
            error = Some(word);
        }
        if self.takes('(') {
            // What the error means, in words.
            while ![Kind::Symbol(')'), Kind::End].contains(self.peek()) {
                self.next();
            }
            self.expect(')')?;
        }
        Ok(Call { name, arguments, result, error, ends })
    }

    /// Values separated by commas, up to `close`.
    fn values(&mut self, close: char) -> Parsed<Vec<Value>> {
        let mut values = Vec::new();
        if self.takes(close) {
            return Ok(values);
        }
        loop {
            values.push(self.value()?);
            if self.takes(close) {
                return Ok(values);
            }
            if !self.takes(',') {
                return self.fail(&format!("\",\" or \"{close}\""));
            }
        }
    }

    fn value(&mut self) -> Parsed<Value> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.fail("lists that are not so deep");
        }
        let mut value = self.primary()?;
        if *self.peek() == Kind::Symbol('|') {
            let mut all = vec![value];
            while self.takes('|') {
                all.push(self.primary()?);
            }
            value = Value::Flags(all);
        }
        self.depth -= 1;
        Ok(value)
    }

    fn primary(&mut self) -> Parsed<Value> {
        match self.peek().clone() {
            Kind::Ellipsis => {
                self.next();
                Ok(Value::Any)
            }
            Kind::Integer(number) => {
                self.next();
                Ok(Value::Number(number))
            }
            Kind::Text(mut text) => {
                self.next();
                while let Kind::Text(more) = self.peek().clone() {
                    text.push_str(&more);
                    self.next();
                }
                if *self.peek() == Kind::Ellipsis {
                    self.next();
                }
                Ok(Value::Text(text))
            }
            Kind::Word(word) => {
                let is_field = matches!(self.after(), Kind::Symbol('=' | '('));
                if is_field {
                    return Ok(Value::Fields(vec![self.field()?]));
                }
                self.next();
                Ok(Value::Word(word))
            }
            Kind::Symbol('[') => {
                self.next();
                self.values(']').map(Value::List)
            }
            Kind::Symbol('{') => {
                self.next();
                let mut fields = Vec::new();
                while !self.takes('}') {
                    fields.push(self.field()?);
                    if *self.peek() != Kind::Symbol('}') {
                        self.expect(',')?;
                    }
                }
                Ok(Value::Fields(fields))
            }
            _ => self.fail("a value"),
        }
    }

    /// `name = value`, `name(arguments)`, or a value alone, whose name is empty.
    fn field(&mut self) -> Parsed<(String, Value)> {
        let Kind::Word(name) = self.peek().clone() else { return Ok((String::new(), self.value()?)) };
        match self.after() {
            Kind::Symbol('=') => {
                self.next();
                self.next();
                Ok((name, self.value()?))
            }
            Kind::Symbol('(') => {
                self.next();
                self.next();
                let arguments = self.values(')')?;
                let value = if self.takes('=') { self.value()? } else { Value::List(arguments) };
                Ok((name, value))
            }
            _ => {
                self.next();
                Ok((String::new(), Value::Word(name)))
            }
        }
    }
}

/// Only packets that are sent have a range of times, and no call returns before it begins.
fn check(line: u32, when: When, action: &Action) -> Parsed<()> {
    let fail = |expected: &str, found: &str| {
        Err(Problem { line, expected: expected.to_owned(), found: found.to_owned() })
    };
    let begins = match when {
        When::At(from, to) | When::After(from, to) if from == to => from,
        _ if matches!(action, Action::Sends(_) | Action::Unsupported(_)) => return Ok(()),
        When::Any => return fail("a time, because only packets that are sent have none", "\"*\""),
        _ => return fail("one time, because only packets that are sent have a range", "a range"),
    };
    match action {
        Action::Call(Call { ends: Some(ends), .. }) if *ends < begins => {
            fail("a call that returns after it begins", "one that returns before")
        }
        _ => Ok(()),
    }
}
