//! The words of a script.

use crate::script::Directive;

/// What a word is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// `--name`.
    Option(String),
    /// A decimal or hexadecimal number.
    Integer(i64),
    /// A number with a decimal point.
    Float(f64),
    /// A name.
    Word(String),
    /// Text in quotes.
    Text(String),
    /// A command in backticks.
    Command(String),
    /// Code between `%{` and `}%`.
    Code(String),
    /// An IPv4 address.
    Address(String),
    /// `...`.
    Ellipsis,
    /// Any other character.
    Symbol(char),
    /// The end of the script.
    End,
}

/// A word, and where it is.
#[derive(Clone, Debug)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Its line.
    pub line: u32,
    /// Where it begins and ends in the text.
    pub span: (usize, usize),
}

/// A problem at a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line.
    pub line: u32,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
}

/// The words of a script, the last of which is [`Kind::End`], and what its comments tell.
pub fn read(text: &str) -> Result<(Vec<Token>, Vec<Directive>), Problem> {
    let mut lexer = Lexer { text, at: 0, line: 1, directives: Vec::new() };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next()?;
        let is_last = token.kind == Kind::End;
        tokens.push(token);
        if is_last {
            return Ok((tokens, lexer.directives));
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    directives: Vec<Directive>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn next(&mut self) -> Result<Token, Problem> {
        self.skip()?;
        let (line, begin) = (self.line, self.at);
        let kind = self.kind()?;
        Ok(Token { kind, line, span: (begin, self.at) })
    }

    /// Takes `bytes` of the text.
    fn take(&mut self, bytes: usize) -> &'a str {
        let taken = &self.rest()[..bytes];
        self.line += taken.matches('\n').count() as u32;
        self.at += bytes;
        taken
    }

    /// Skips blanks and comments.
    fn skip(&mut self) -> Result<(), Problem> {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start().len();
            if blanks > 0 {
                self.take(blanks);
            } else if rest.starts_with("//") {
                let comment = self.take(rest.find('\n').unwrap_or(rest.len()));
                if let Some(told) = comment.trim_start_matches('/').trim().strip_prefix("elephan:") {
                    self.direct(told)?;
                }
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let end = comment.find("*/").ok_or_else(|| self.unfinished("*/"))?;
                self.take(end + 4);
            } else {
                return Ok(());
            }
        }
    }

    fn unfinished(&self, expected: &str) -> Problem {
        Problem { line: self.line, expected: expected.to_owned(), found: "the end of the script".to_owned() }
    }

    fn direct(&mut self, told: &str) -> Result<(), Problem> {
        let told = told.trim();
        if let Some(reason) = told.strip_prefix("kernel differs:") {
            self.directives.push(Directive::KernelDiffers(reason.trim().to_owned()));
            return Ok(());
        }
        if let Some(reason) = told.strip_prefix("simulator differs:") {
            self.directives.push(Directive::SimulatorDiffers(reason.trim().to_owned()));
            return Ok(());
        }
        for setting in told.split(',') {
            let Some((key, value)) = setting.split_once('=') else {
                return Err(Problem {
                    line: self.line,
                    expected: "KEY=VALUE, \"kernel differs: REASON\" or \"simulator differs: REASON\""
                        .to_owned(),
                    found: format!("\"{}\"", setting.trim()),
                });
            };
            self.directives.push(Directive::Set(key.trim().to_owned(), value.trim().to_owned()));
        }
        Ok(())
    }

    fn kind(&mut self) -> Result<Kind, Problem> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Kind::End) };
        if rest.starts_with("...") {
            self.take(3);
            return Ok(Kind::Ellipsis);
        }
        if let Some(name) = rest.strip_prefix("--") {
            let length = span_of(name, is_word);
            if length > 0 {
                return Ok(Kind::Option(self.take(2 + length)[2..].to_owned()));
            }
        }
        if rest.starts_with("%{") {
            let end = rest.find("}%").ok_or_else(|| self.unfinished("}%"))?;
            let code = self.take(end + 2);
            return Ok(Kind::Code(code[2..end].trim_matches([' ', '\t']).to_owned()));
        }
        if first == '"' || first == '`' {
            let quoted = self.quoted(first)?;
            return Ok(if first == '"' { Kind::Text(quoted) } else { Kind::Command(quoted) });
        }
        if let Some(number) = self.number() {
            return number;
        }
        let length = span_of(rest, is_word);
        if length > 0 {
            return Ok(Kind::Word(self.take(length).to_owned()));
        }
        self.take(first.len_utf8());
        Ok(Kind::Symbol(first))
    }

    fn quoted(&mut self, quote: char) -> Result<String, Problem> {
        let mut escaped = false;
        let inner = &self.rest()[1..];
        let end = inner.find(|c| {
            let ends = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let end = end.ok_or_else(|| self.unfinished(&quote.to_string()))?;
        let taken = self.take(end + 2);
        Ok(taken[1..=end].to_owned())
    }

    /// A number or an address, if one begins here and is no part of a word.
    fn number(&mut self) -> Option<Result<Kind, Problem>> {
        let rest = self.rest();
        let sign = usize::from(rest.starts_with('-'));
        let whole = span_of(&rest[sign..], |c| c.is_ascii_digit());
        let word = span_of(rest, is_word);
        if sign == 0 && rest.starts_with("0x") && word > 2 {
            let text = self.take(word);
            let number = u64::from_str_radix(&text[2..], 16).map_err(|_| self.no_number(text));
            return Some(number.map(|number| Kind::Integer(number.cast_signed())));
        }
        let after = &rest[sign + whole..];
        let fraction = after.strip_prefix('.').map_or(0, |digits| span_of(digits, |c| c.is_ascii_digit()));
        if fraction > 0 {
            if whole > 0 && sign == 0 {
                let parts = span_of(rest, |c| c.is_ascii_digit() || c == '.');
                if rest[..parts].matches('.').count() == 3 && !rest[..parts].contains("..") {
                    return Some(Ok(Kind::Address(self.take(parts).to_owned())));
                }
            }
            let text = self.take(sign + whole + 1 + fraction);
            return Some(text.parse().map(Kind::Float).map_err(|_| self.no_number(text)));
        }
        if whole == 0 || sign == 0 && word > whole {
            return None;
        }
        let text = self.take(sign + whole);
        Some(text.parse().map(Kind::Integer).map_err(|_| self.no_number(text)))
    }

    fn no_number(&self, text: &str) -> Problem {
        Problem { line: self.line, expected: "a number of 64 bits".to_owned(), found: text.to_owned() }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Bytes at the beginning of `text` whose characters are of a class.
fn span_of(text: &str, class: impl Fn(char) -> bool) -> usize {
    text.find(|c| !class(c)).unwrap_or(text.len())
}
