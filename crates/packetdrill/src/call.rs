//! Arguments of system calls.

use crate::run::Stop;
use crate::script::{Call, Value};

/// The names in a word, or in flags such as `O_RDWR|O_NONBLOCK`.
pub fn names(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::Word(word)) => vec![word],
        Some(Value::Flags(all)) => all.iter().flat_map(|one| names(Some(one))).collect(),
        _ => Vec::new(),
    }
}

/// Constants that options of sockets have as values (include/uapi/linux/in.h).
const CONSTANTS: [(&str, i64); 4] =
    [("IP_PMTUDISC_DONT", 0), ("IP_PMTUDISC_WANT", 1), ("IP_PMTUDISC_DO", 2), ("IP_PMTUDISC_PROBE", 3)];

/// A flag that scripts also write as a number (include/linux/socket.h).
const MSG_FASTOPEN: i64 = 0x2000_0000;

/// The calls that a script can make.
const KNOWN: [&str; 19] = [
    "socket",
    "bind",
    "listen",
    "accept",
    "accept4",
    "connect",
    "write",
    "send",
    "sendto",
    "read",
    "recv",
    "recvfrom",
    "close",
    "shutdown",
    "fcntl",
    "ioctl",
    "poll",
    "setsockopt",
    "getsockopt",
];

/// The arguments of a call.
pub struct Arguments<'a>(&'a Call);

impl<'a> Arguments<'a> {
    /// Those of `call`.
    pub fn new(call: &'a Call) -> Self {
        Self(call)
    }

    /// A call that no stack has ends the script.
    pub fn check_name(&self) -> Result<(), Stop> {
        let name = self.0.name.as_str();
        if KNOWN.contains(&name) { Ok(()) } else { Err(Stop::Skip(name.to_owned())) }
    }

    fn wrong(&self, index: usize, expected: &str) -> Stop {
        Stop::Fail(
            format!("{expected} as argument {} of {}", index + 1, self.0.name),
            "something else".to_owned(),
        )
    }

    /// The number of the descriptor that the script expects from the call.
    pub fn expected(&self) -> i64 {
        match self.0.result {
            Value::Number(number) => number,
            _ => -1,
        }
    }

    /// The number at `index`.
    pub fn number(&self, index: usize) -> Result<i64, Stop> {
        match self.0.arguments.get(index) {
            Some(Value::Number(number)) => Ok(*number),
            _ => Err(self.wrong(index, "a number")),
        }
    }

    /// The number of bytes at `index`.
    pub fn size(&self, index: usize) -> Result<u64, Stop> {
        u64::try_from(self.number(index)?).map_err(|_| self.wrong(index, "a number of 0 or more"))
    }

    /// Whether the argument at `index` is a pointer to nowhere.
    pub fn is_null(&self, index: usize) -> bool {
        self.word(index) == "NULL"
    }

    /// The name at `index`; empty if there is none.
    pub fn word(&self, index: usize) -> &'a str {
        match self.0.arguments.get(index) {
            Some(Value::Word(word)) => word,
            _ => "",
        }
    }

    /// The number, or the constant with this meaning, in the list of one at `index`.
    pub fn listed(&self, index: usize) -> Result<i64, Stop> {
        let known = |word: &str| CONSTANTS.iter().find(|(name, _)| *name == word).map(|(_, number)| *number);
        let number = match self.0.arguments.get(index) {
            Some(Value::List(items)) if items.len() == 1 => match &items[0] {
                Value::Number(number) => Some(*number),
                Value::Word(word) => known(word),
                _ => None,
            },
            _ => None,
        };
        number.ok_or_else(|| self.wrong(index, "a number in brackets"))
    }

    /// The number of bytes in the list of one at `index`.
    pub fn listed_size(&self, index: usize) -> Result<u64, Stop> {
        u64::try_from(self.listed(index)?).map_err(|_| self.wrong(index, "a number of 0 or more in brackets"))
    }

    /// The items of the list at `index`, each of which has fields.
    pub fn records(&self, index: usize) -> Result<Vec<&'a [(String, Value)]>, Stop> {
        let Some(Value::List(items)) = self.0.arguments.get(index) else {
            return Err(self.wrong(index, "a list"));
        };
        let fields = |item: &'a Value| match item {
            Value::Fields(fields) => Ok(&fields[..]),
            _ => Err(self.wrong(index, "a list of fields in braces")),
        };
        items.iter().map(fields).collect()
    }

    /// The numbers of the fields at `index`.
    pub fn fields(&self, index: usize) -> Vec<i64> {
        let Some(Value::Fields(fields)) = self.0.arguments.get(index) else { return Vec::new() };
        let number = |value: &Value| if let Value::Number(number) = value { Some(*number) } else { None };
        fields.iter().filter_map(|(_, value)| number(value)).collect()
    }

    /// The text at `index`, alone or in a list.
    pub fn text(&self, index: usize) -> Result<&'a str, Stop> {
        let value = match self.0.arguments.get(index) {
            Some(Value::List(items)) if items.len() == 1 => items.first(),
            value => value,
        };
        match value {
            Some(Value::Text(text)) => Ok(text),
            _ => Err(self.wrong(index, "text in quotes")),
        }
    }

    /// Whether they are those of `socket` for TCP over IPv4.
    pub fn is_tcp_over_ipv4(&self) -> bool {
        let domain = matches!(self.0.arguments.first(), Some(Value::Any)) || self.word(0) == "AF_INET";
        let kind = names(self.0.arguments.get(1));
        let protocol =
            self.word(2) == "IPPROTO_TCP" || matches!(self.0.arguments.get(2), Some(Value::Number(0 | 6)));
        domain && kind == ["SOCK_STREAM"] && protocol
    }

    /// The names among them.
    pub fn texts(&self) -> String {
        self.0.arguments.iter().flat_map(|value| names(Some(value))).collect::<Vec<_>>().join(", ")
    }

    /// The flags at `index`, all of which are `known`.
    pub fn flags<T: Copy>(&self, index: usize, known: &[(&str, T)]) -> Result<Vec<T>, Stop> {
        let flag = |name: &str| match known.iter().find(|(known, _)| *known == name) {
            Some((_, flag)) => Ok(*flag),
            None => Err(Stop::Skip(format!("{} with {name}", self.0.name))),
        };
        match self.0.arguments.get(index) {
            Some(Value::Number(0)) => Ok(Vec::new()),
            Some(Value::Number(MSG_FASTOPEN)) => Ok(vec![flag("MSG_FASTOPEN")?]),
            Some(Value::Number(number)) => Err(Stop::Skip(format!("{} with {number:#x}", self.0.name))),
            flags => names(flags).into_iter().map(flag).collect(),
        }
    }
}
