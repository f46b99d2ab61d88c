//! Tables and values of the file, each with its key and place.

use std::str::FromStr;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::fault::Fault;
use crate::names::suggestion;

/// A value.
#[derive(Clone)]
pub(super) struct Node<'a> {
    /// Its key, dotted.
    pub(super) key: String,
    pub(super) offset: usize,
    value: &'a DeValue<'a>,
}

/// A table whose keys are all known, or chosen by who wrote the file.
pub(super) struct Section<'a> {
    key: String,
    offset: usize,
    table: &'a DeTable<'a>,
}

/// `parent.key`; quoted where TOML asks for it.
pub(super) fn dotted(parent: &str, key: &str) -> String {
    let bare = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let key = if bare {
        key.to_owned()
    } else {
        format!("{key:?}")
    };
    if parent.is_empty() {
        key
    } else {
        format!("{parent}.{key}")
    }
}

impl<'a> Section<'a> {
    /// The top of the file.
    pub(super) fn top(table: &'a DeTable<'a>, known: &[&str]) -> Result<Self, Fault> {
        let section = Self {
            key: String::new(),
            offset: 0,
            table,
        };
        section.refuse_unknown(known)?;
        Ok(section)
    }

    fn refuse_unknown(&self, known: &[&str]) -> Result<(), Fault> {
        let keys = self.table.iter().map(|(key, _)| key);
        let first = keys
            .filter(|key| !known.contains(&key.get_ref().as_ref()))
            .min_by_key(|key| key.span().start);
        match first {
            None => Ok(()),
            Some(key) => {
                let name = key.get_ref().as_ref();
                let hint = suggestion(name, known.iter().copied());
                let reason = format!("unknown key: {hint}");
                Err(Fault::new(
                    key.span().start,
                    dotted(&self.key, name),
                    reason,
                ))
            }
        }
    }

    /// The value of a key, if there is one.
    pub(super) fn get(&self, key: &str) -> Option<Node<'a>> {
        let value = self.table.get(key)?;
        Some(self.node(key, value))
    }

    fn node(&self, key: &str, value: &'a Spanned<DeValue<'a>>) -> Node<'a> {
        Node {
            key: dotted(&self.key, key),
            offset: value.span().start,
            value: value.get_ref(),
        }
    }

    /// The value of a key; `what` says what it is for, where there is none.
    pub(super) fn required(&self, key: &str, what: &str) -> Result<Node<'a>, Fault> {
        self.get(key)
            .ok_or_else(|| self.fault_at(key, format!("missing: {what}")))
    }

    /// The keys and values, in the order of the file.
    pub(super) fn entries(&self) -> Vec<(&'a str, Node<'a>)> {
        let mut entries: Vec<_> = self.table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        entries
            .into_iter()
            .map(|(key, value)| {
                let name = key.get_ref().as_ref();
                (name, self.node(name, value))
            })
            .collect()
    }

    /// A fault of a key that the section does not have: at its head.
    pub(super) fn fault_at(&self, key: &str, reason: impl Into<String>) -> Fault {
        Fault::new(self.offset, dotted(&self.key, key), reason)
    }
}

impl<'a> Node<'a> {
    /// A fault of this value.
    pub(super) fn fault(&self, reason: impl Into<String>) -> Fault {
        Fault::new(self.offset, &self.key, reason)
    }

    fn wrong(&self, wanted: &str) -> Fault {
        let found = match self.value {
            DeValue::String(text) => format!("the string {text:?}"),
            DeValue::Integer(number) => format!("the number {number}"),
            DeValue::Float(number) => format!("the number {number}"),
            DeValue::Boolean(value) => format!("`{value}`"),
            DeValue::Datetime(_) => "a date".to_owned(),
            DeValue::Array(_) => "an array".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        };
        self.fault(format!("write {wanted}, not {found}"))
    }

    /// A string; `wanted` describes it, where it is something else.
    pub(super) fn string(&self, wanted: &str) -> Result<&'a str, Fault> {
        match self.value {
            DeValue::String(text) => Ok(text),
            _ => Err(self.wrong(wanted)),
        }
    }

    /// What a string says.
    pub(super) fn parsed<T: FromStr<Err = String>>(&self, wanted: &str) -> Result<T, Fault> {
        self.string(wanted)?
            .parse()
            .map_err(|reason: String| self.fault(reason))
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Fault> {
        let all: Vec<_> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        let wanted = format!("one of {}", all.join(", "));
        let word = self.string(&wanted)?;
        let found = words.iter().find(|(known, _)| *known == word);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let hint = suggestion(word, words.iter().map(|(word, _)| *word));
            self.fault(format!("`{word}` is unknown here: {hint}"))
        })
    }

    pub(super) fn boolean(&self) -> Result<bool, Fault> {
        match self.value {
            DeValue::Boolean(value) => Ok(*value),
            _ => Err(self.wrong("true or false")),
        }
    }

    /// A whole number from `least` to `most`.
    pub(super) fn integer<T>(&self, least: T, most: T) -> Result<T, Fault>
    where
        T: TryFrom<u64> + Copy + Ord + std::fmt::Display,
    {
        let wanted = || format!("a whole number from {least} to {most}");
        let DeValue::Integer(number) = self.value else {
            return Err(self.wrong(&wanted()));
        };
        u64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .and_then(|number| T::try_from(number).ok())
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| self.wrong(&wanted()))
    }

    /// A number or a string, as a string.
    pub(super) fn amount(&self, wanted: &str) -> Result<String, Fault> {
        match self.value {
            DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
            DeValue::String(text) => Ok(text.clone().into_owned()),
            _ => Err(self.wrong(wanted)),
        }
    }

    /// The elements of an array; `wanted` describes it, where it is something else.
    pub(super) fn elements(&self, wanted: &str) -> Result<Vec<Self>, Fault> {
        let DeValue::Array(array) = self.value else {
            return Err(self.wrong(wanted));
        };
        let element = |(place, value): (usize, &'a Spanned<DeValue<'a>>)| Self {
            // Counted from 1, as lines are.
            key: format!("{}[{}]", self.key, place + 1),
            offset: value.span().start,
            value: value.get_ref(),
        };
        Ok(array.iter().enumerate().map(element).collect())
    }

    /// A table with known keys only; `wanted` describes it, where it is something else.
    pub(super) fn section(&self, wanted: &str, known: &[&str]) -> Result<Section<'a>, Fault> {
        let section = self.table(wanted)?;
        section.refuse_unknown(known)?;
        Ok(section)
    }

    /// A table whose keys are names.
    pub(super) fn table(&self, wanted: &str) -> Result<Section<'a>, Fault> {
        let DeValue::Table(table) = self.value else {
            return Err(self.wrong(wanted));
        };
        Ok(Section {
            key: self.key.clone(),
            offset: self.offset,
            table,
        })
    }

    /// The same under another key.
    pub(super) fn named(self, key: String) -> Self {
        Self { key, ..self }
    }
}
