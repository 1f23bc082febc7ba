//! The arguments of a call held against the schema of its tool, before anybody is asked.
//!
//! A schema comes from a server and is not trusted: it is bounded in size, nothing that it refers to
//! elsewhere is fetched, and its patterns take linear time, or a bounded one where they look around.
//! With one that cannot be used the call goes through unchecked: the server knows best.

mod problem;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use jsonschema::{PatternOptions, Validator, error::ValidationErrorKind};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

pub use problem::Problem;

use super::{
    error::{ErrorCode, ErrorObject},
    tool_id::ToolId,
};
use crate::{
    config::defaults::{
        PATTERN_BACKTRACKS_MAX, PROBLEMS_MAX, QUOTE_BYTES_MAX, SCHEMA_BYTES_MAX,
        VALIDATORS_BYTES_MAX, VALIDATORS_MAX,
    },
    redact,
};

/// What came of holding arguments against a schema.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// They fit.
    Fits,
    /// They could not be held against it.
    Unchecked(Unchecked),
    /// They do not fit.
    Wrong(Misfit),
}

/// Why arguments could not be held against a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unchecked {
    /// It is larger than one that is read.
    #[error("its schema of {0} bytes is larger than the {SCHEMA_BYTES_MAX} that are read")]
    TooLarge(usize),
    /// It is none that is understood.
    #[error("its schema cannot be used: {0}")]
    Unusable(Arc<str>),
    /// The arguments have a number that is beyond what is understood, or are nested too deep.
    #[error("the arguments are beyond what is understood")]
    Unreadable,
}

/// What is wrong with arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Misfit {
    /// The first problems, up to [`PROBLEMS_MAX`].
    pub problems: Vec<Problem>,
    /// There are more.
    pub has_more: bool,
}

impl Misfit {
    /// Returns the error of a call to the tool `id`.
    pub fn to_error(&self, id: &ToolId) -> ErrorObject {
        let remedy = match self.has_more {
            true => "Mend these, then call again; there are more.",
            false => "Mend these, then call again.",
        };
        let message = format!("the arguments do not fit `{id}`, which was not called");
        let lines: Vec<String> = self.problems.iter().map(Problem::to_string).collect();
        let expected: Map<String, Value> = (self.problems.iter())
            .filter_map(|problem| Some((problem.field.clone(), problem.expected.clone()?)))
            .collect();
        let error = ErrorObject::new(ErrorCode::ValidationInput, message, remedy)
            .about(id)
            .detail("reason", json!("invalid_arguments"))
            .detail("validationErrors", json!(lines));
        if expected.is_empty() { error } else { error.detail("expected", Value::Object(expected)) }
    }
}

/// What stands for the text of a schema.
type Key = [u8; 32];

fn key(schema: &str) -> Key {
    Sha256::digest(schema).into()
}

/// Schemas that were understood before.
#[derive(Default)]
pub struct Validators {
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    known: HashMap<Key, Known>,
    bytes: usize,
    /// Grows with each use.
    clock: u64,
}

struct Known {
    compiled: Arc<Result<Compiled, Unchecked>>,
    bytes: usize,
    used: u64,
}

struct Compiled {
    validator: Validator,
    schema: Value,
}

impl Validators {
    /// Tells whether the JSON text of a `schema` was understood before, so that [`Validators::check`]
    /// takes no time for it.
    pub fn knows(&self, schema: &str) -> bool {
        schema.len() > SCHEMA_BYTES_MAX || self.lock(|cache| cache.get(&key(schema))).is_some()
    }

    /// Understands the JSON text of a `schema` that is not known yet. It may take as long as patterns
    /// take to be compiled: where others wait, this is to be done beside them.
    pub fn learn(&self, schema: &str) {
        drop(self.compiled(schema));
    }

    /// Holds `args`, the JSON text of an object, against the JSON text of a `schema`.
    pub fn check(&self, schema: &str, args: &str) -> Verdict {
        if schema.len() > SCHEMA_BYTES_MAX {
            return Verdict::Unchecked(Unchecked::TooLarge(schema.len()));
        }
        let compiled = self.compiled(schema);
        let Compiled { validator, schema } = match &*compiled {
            Ok(compiled) => compiled,
            Err(reason) => return Verdict::Unchecked(reason.clone()),
        };
        let Ok(args) = serde_json::from_str::<Value>(args) else {
            return Verdict::Unchecked(Unchecked::Unreadable);
        };
        let mut problems = Vec::new();
        for error in validator.iter_errors(&args) {
            // Nobody knows whether it matches: the server may find out.
            if matches!(error.kind(), ValidationErrorKind::BacktrackLimitExceeded { .. }) {
                continue;
            }
            problem::add(&error, schema, &mut problems);
            if problems.len() > PROBLEMS_MAX {
                break;
            }
        }
        if problems.is_empty() {
            return Verdict::Fits;
        }
        let has_more = problems.len() > PROBLEMS_MAX;
        problems.truncate(PROBLEMS_MAX);
        Verdict::Wrong(Misfit { problems, has_more })
    }

    /// Returns what a schema was understood as. It is read without the lock.
    fn compiled(&self, schema: &str) -> Arc<Result<Compiled, Unchecked>> {
        let key = key(schema);
        if let Some(known) = self.lock(|cache| cache.get(&key)) {
            return known;
        }
        let compiled = Arc::new(compile(schema));
        let old = self.lock(|cache| cache.put(key, &compiled, schema.len()));
        // Without the lock: a large one takes as long to be dropped as others to be held against.
        drop(old);
        compiled
    }

    fn lock<T>(&self, with: impl FnOnce(&mut Cache) -> T) -> T {
        with(&mut self.cache.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Debug for Validators {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{} schemas]", self.lock(|cache| cache.known.len()))
    }
}

impl Cache {
    fn get(&mut self, key: &Key) -> Option<Arc<Result<Compiled, Unchecked>>> {
        self.clock += 1;
        let known = self.known.get_mut(key)?;
        known.used = self.clock;
        Some(Arc::clone(&known.compiled))
    }

    /// Adds one, and returns those that make room.
    fn put(
        &mut self,
        key: Key,
        compiled: &Arc<Result<Compiled, Unchecked>>,
        bytes: usize,
    ) -> Vec<Known> {
        self.clock += 1;
        let known = Known { compiled: Arc::clone(compiled), bytes, used: self.clock };
        self.bytes += bytes;
        let mut gone: Vec<Known> = self.known.insert(key, known).into_iter().collect();
        self.bytes -= gone.iter().map(|old| old.bytes).sum::<usize>();
        while self.known.len() > VALIDATORS_MAX || self.bytes > VALIDATORS_BYTES_MAX {
            // There are a few hundred, and one more only with each new schema.
            let oldest = self.known.iter().min_by_key(|(_, known)| known.used);
            let Some(oldest) = oldest.map(|(key, _)| *key) else { break };
            if let Some(old) = self.known.remove(&oldest) {
                self.bytes -= old.bytes;
                gone.push(old);
            }
        }
        gone
    }
}

/// Reads a schema: as one of draft 2020-12, unless it says which other one it is of.
fn compile(schema: &str) -> Result<Compiled, Unchecked> {
    let unusable = |error: &dyn std::fmt::Display| {
        Unchecked::Unusable(redact::cut(&error.to_string(), QUOTE_BYTES_MAX).into())
    };
    let schema: Value = serde_json::from_str(schema).map_err(|error| unusable(&error))?;
    let options = || jsonschema::options().offline();
    // Only these can look around, which common patterns of addresses do.
    let looking = PatternOptions::fancy_regex().backtrack_limit(PATTERN_BACKTRACKS_MAX);
    let validator = options()
        .with_pattern_options(PatternOptions::regex())
        .build(&schema)
        .or_else(|_| options().with_pattern_options(looking).build(&schema))
        .map_err(|error| unusable(&error.masked()))?;
    Ok(Compiled { validator, schema })
}

#[cfg(test)]
mod tests;
