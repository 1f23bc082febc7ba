//! The arguments of a call held against the schema of its tool, before anybody is asked.
//!
//! A schema comes from a server and is not trusted: it is bounded in size, nothing that it refers to
//! elsewhere is fetched, and its patterns take linear time, or a bounded one where they look around.
//! With one that cannot be used the call goes through unchecked: the server knows best.

mod argument_problem;
mod bounded_schema;
mod compiled_schema;
mod metered_arguments;
mod step_budget;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

pub use argument_problem::ArgumentProblem;
pub use bounded_schema::TooComplex;
use compiled_schema::CompiledSchema;
use step_budget::CheckStopped;

use super::{
    error::{ErrorCode, ErrorObject},
    tool_id::ToolId,
};
use crate::{
    compute_pool::StopFlag,
    config::defaults::{
        CHECK_STEPS_INLINE_MAX, CHECK_STEPS_MAX, COMPILE_STEP_BYTES, COMPILE_STEPS_MAX,
        INLINE_BYTES_MAX, SCHEMA_BYTES_MAX, VALIDATORS_BYTES_MAX, VALIDATORS_MAX,
    },
    holder::Account,
};

/// What came of holding arguments against a schema.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgumentVerdict {
    /// They fit.
    Fits,
    /// They fit, as the schema allows fields of any name, and some may be misspelt.
    Doubtful(Vec<ArgumentProblem>),
    /// They could not be held against it.
    Unchecked(UncheckedArguments),
    /// They do not fit.
    Wrong(ArgumentMismatch),
}

/// Why arguments could not be held against a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UncheckedArguments {
    /// It is larger than one that is read.
    #[error("its schema of {0} bytes is larger than the {SCHEMA_BYTES_MAX} that are read")]
    TooLarge(usize),
    /// It is none that is understood.
    #[error("its schema cannot be used: {0}")]
    Unusable(Arc<str>),
    /// It is beyond the bounds.
    #[error("its schema is too complex: {0}")]
    TooComplex(#[from] TooComplex),
    /// Checking these arguments, or compiling the schema, takes more than there is for one call.
    #[error("to check them takes more than {CHECK_STEPS_MAX} steps")]
    TooCostly,
    /// Too many other checks wait.
    #[error("too many checks wait to be done")]
    Busy,
    /// The arguments have a number that is beyond what is understood, or are nested too deep.
    #[error("the arguments are beyond what is understood")]
    Unreadable,
}

/// What is wrong with arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgumentMismatch {
    /// The first problems, up to [`crate::config::defaults::PROBLEMS_MAX`].
    pub problems: Vec<ArgumentProblem>,
    /// There are more.
    pub has_more: bool,
}

impl ArgumentMismatch {
    /// Returns the error of a call to the tool `id`.
    pub fn to_error(&self, id: &ToolId) -> ErrorObject {
        let remedy = match self.has_more {
            true => "Mend these, then call again; there are more.",
            false => "Mend these, then call again.",
        };
        let message = format!("the arguments do not fit `{id}`, which was not called");
        let lines: Vec<String> = self.problems.iter().map(ArgumentProblem::to_string).collect();
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
pub struct SchemaCache {
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
    compiled: Arc<Result<CompiledSchema, UncheckedArguments>>,
    bytes: usize,
    used: u64,
}

impl UncheckedArguments {
    /// Tells whether the caller is told: the schema, or the load, has kept the service from a check
    /// that it does for others.
    pub fn should_report(&self) -> bool {
        matches!(self, Self::TooComplex(_) | Self::TooCostly | Self::Busy)
    }
}

impl SchemaCache {
    /// Holds `args` of `account`, the JSON text of an object, against the JSON text of a `schema`, as far
    /// as that holds up an event loop for less than a millisecond. Nothing means:
    /// [`SchemaCache::check`] them elsewhere.
    pub fn check_briefly(
        &self,
        account: Account,
        schema: &str,
        args: &str,
    ) -> Option<ArgumentVerdict> {
        if schema.len() > SCHEMA_BYTES_MAX {
            return Some(ArgumentVerdict::Unchecked(UncheckedArguments::TooLarge(schema.len())));
        }
        let known = self.lock(|cache| cache.get(&key(schema)))?;
        let compiled = match &*known {
            Ok(compiled) => compiled,
            Err(reason) => return Some(ArgumentVerdict::Unchecked(reason.clone())),
        };
        if compiled.is_too_costly(account, args) {
            return Some(ArgumentVerdict::Unchecked(UncheckedArguments::TooCostly));
        }
        // What is wrong is looked up in the schema.
        if args.len().max(schema.len()) > INLINE_BYTES_MAX {
            return None;
        }
        compiled.check(args, CHECK_STEPS_INLINE_MAX, None).ok()
    }

    /// Holds `args` of `account`, the JSON text of an object, against the JSON text of a `schema`, until
    /// `stop` is set. It may take a second: where others wait, this is to be done beside them.
    pub fn check(
        &self,
        account: Account,
        schema: &str,
        args: &str,
        stop: Option<&StopFlag>,
    ) -> ArgumentVerdict {
        if schema.len() > SCHEMA_BYTES_MAX {
            return ArgumentVerdict::Unchecked(UncheckedArguments::TooLarge(schema.len()));
        }
        let known = self.compiled(schema);
        let compiled = match &*known {
            Ok(compiled) => compiled,
            Err(reason) => return ArgumentVerdict::Unchecked(reason.clone()),
        };
        if compiled.is_too_costly(account, args) {
            return ArgumentVerdict::Unchecked(UncheckedArguments::TooCostly);
        }
        compiled.check(args, CHECK_STEPS_MAX, stop).unwrap_or_else(|stopped| {
            if stopped != CheckStopped::Unwanted {
                compiled.remember_cost(account, args);
            }
            ArgumentVerdict::Unchecked(UncheckedArguments::TooCostly)
        })
    }

    /// Returns about the memory that compiling a schema takes, in bytes: none where that was done before.
    pub fn bytes_to_compile(&self, schema: &str) -> usize {
        if self.lock(|cache| cache.get(&key(schema))).is_some() {
            return 0;
        }
        let n_parts = schema.bytes().filter(|byte| *byte == b'{').count();
        let steps_max = usize::try_from(COMPILE_STEPS_MAX).unwrap_or(usize::MAX);
        // What is left behind, and what it takes meanwhile.
        2 * n_parts.min(steps_max) * COMPILE_STEP_BYTES
    }

    /// Returns what a schema was understood as. It is read without the lock.
    fn compiled(&self, schema: &str) -> Arc<Result<CompiledSchema, UncheckedArguments>> {
        let key = key(schema);
        if let Some(known) = self.lock(|cache| cache.get(&key)) {
            return known;
        }
        let compiled = Arc::new(CompiledSchema::new(schema));
        let n_bytes = compiled.as_ref().as_ref().map_or(schema.len(), CompiledSchema::n_bytes);
        if n_bytes > VALIDATORS_BYTES_MAX / 4 {
            return compiled;
        }
        let old = self.lock(|cache| cache.put(key, &compiled, n_bytes));
        // Without the lock: a large one takes as long to be dropped as others to be held against.
        drop(old);
        compiled
    }

    fn lock<T>(&self, with: impl FnOnce(&mut Cache) -> T) -> T {
        with(&mut self.cache.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Debug for SchemaCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{} schemas]", self.lock(|cache| cache.known.len()))
    }
}

impl Cache {
    fn get(&mut self, key: &Key) -> Option<Arc<Result<CompiledSchema, UncheckedArguments>>> {
        self.clock += 1;
        let known = self.known.get_mut(key)?;
        known.used = self.clock;
        Some(Arc::clone(&known.compiled))
    }

    /// Adds one, and returns those that make room.
    fn put(
        &mut self,
        key: Key,
        compiled: &Arc<Result<CompiledSchema, UncheckedArguments>>,
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

#[cfg(test)]
mod tests;
