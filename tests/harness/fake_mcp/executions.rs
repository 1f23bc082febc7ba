//! The execution counts of keys, in memory and in a file that outlives the process.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufRead as _, BufReader, Write as _},
    path::Path,
};

use serde_json::{Value, json};

/// The counts and their file.
#[derive(Debug, Default)]
pub(crate) struct Executions {
    counts: BTreeMap<String, u64>,
    file: Option<File>,
    /// The number of processes that used the file before.
    pub(crate) n_earlier_starts: usize,
}

impl Executions {
    /// Reads the counts of earlier processes from the file, and appends to it from now on.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let Some(path) = path else { return Ok(Self::default()) };
        let file = File::options().create(true).append(true).read(true).open(path)?;
        let mut this = Self::default();
        for line in BufReader::new(&file).lines() {
            let line: Value = serde_json::from_str(&line?)?;
            match line["key"].as_str() {
                Some(key) => *this.counts.entry(key.to_owned()).or_default() += 1,
                None => this.n_earlier_starts += 1,
            }
        }
        this.file = Some(file);
        this.append(&json!({ "pid": std::process::id(), "event": "start" }))?;
        Ok(this)
    }

    /// Counts one execution, first on disk, and returns the count.
    pub(crate) fn add(&mut self, key: &str) -> io::Result<u64> {
        self.append(&json!({ "pid": std::process::id(), "key": key }))?;
        let count = self.counts.entry(key.to_owned()).or_default();
        *count += 1;
        Ok(*count)
    }

    /// Returns the number of executions of a key.
    pub(crate) fn n(&self, key: &str) -> u64 {
        self.counts.get(key).copied().unwrap_or_default()
    }

    /// Returns all counts.
    pub(crate) fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }

    /// Appends a line in one write, so that several processes do not mix within a line.
    fn append(&mut self, line: &Value) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(format!("{line}\n").as_bytes())
    }
}
