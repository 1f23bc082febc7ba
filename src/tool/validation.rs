//! The check of a call's arguments against the schema of its tool, before the call.
//!
//! A schema comes from a server and is not trusted. Its size is bounded, references to other
//! documents are not fetched, and its patterns take linear time, or bounded time with look-around.
//! If a schema is unusable, metamcp sends the call unchecked, and the server decides.

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
    capacity_holder::Account,
    compute_pool::StopFlag,
    config::defaults::{
        CHECK_STEPS_INLINE_MAX, CHECK_STEPS_MAX, COMPILE_STEP_BYTES, COMPILE_STEPS_MAX,
        INLINE_BYTES_MAX, SCHEMA_BYTES_MAX, VALIDATORS_BYTES_MAX, VALIDATORS_MAX,
    },
};

/// The result of a check.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgumentVerdict {
    /// They fit.
    Fits,
    /// They fit, because the schema allows fields of any name, but some may be misspelt.
    Doubtful(Vec<ArgumentProblem>),
    /// They could not be checked.
    Unchecked(UncheckedArguments),
    /// They do not fit.
    Wrong(ArgumentMismatch),
}

/// The reason that arguments could not be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UncheckedArguments {
    /// The schema is too large to be read.
    #[error("the tool's schema has {0} bytes, and metamcp reads at most {SCHEMA_BYTES_MAX}")]
    TooLarge(usize),
    /// The schema is invalid or not understood.
    #[error("the tool's schema is unusable: {0}")]
    Unusable(Arc<str>),
    /// The schema exceeds the bounds.
    #[error("the tool's schema is too complex: {0}")]
    TooComplex(TooComplex),
    /// Checking these arguments, or compiling the schema, takes more steps than one call may use.
    #[error("the check takes more than {CHECK_STEPS_MAX} steps")]
    TooCostly,
    /// Too many other checks are waiting.
    #[error("too many other checks are waiting")]
    Busy,
    /// The arguments have a number out of range, or are nested too deep.
    #[error("they are nested too deep or have a number out of range")]
    Unreadable,
}

/// The mismatch between arguments and their schema.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgumentMismatch {
    /// The first problems, up to [`crate::config::defaults::PROBLEMS_MAX`].
    pub problems: Vec<ArgumentProblem>,
    /// `true` if there are more.
    pub has_more: bool,
}

impl ArgumentMismatch {
    /// Returns the error of a call to the tool `id`.
    pub fn to_error(&self, id: &ToolId) -> ErrorObject {
        let remedy = match self.has_more {
            true => "Fix these problems and call again; there are more.",
            false => "Fix these problems and call again.",
        };
        let message = format!("`{id}` was not called: the arguments do not match its schema");
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

/// The hash of a schema's text.
type SchemaKey = [u8; 32];

/// A compiled schema, or the reason that there is none.
type Compilation = Arc<Result<CompiledSchema, UncheckedArguments>>;

fn key(schema: &str) -> SchemaKey {
    Sha256::digest(schema).into()
}

/// A cache of compiled schemas.
#[derive(Default)]
pub struct SchemaCache {
    schemas: Mutex<CachedSchemas>,
}

#[derive(Default)]
struct CachedSchemas {
    by_key: HashMap<SchemaKey, CachedSchema>,
    bytes: usize,
    /// The counter of uses.
    clock: u64,
}

struct CachedSchema {
    compiled: Compilation,
    bytes: usize,
    used: u64,
}

impl UncheckedArguments {
    /// Returns whether to report this to the caller: the schema or the load prevented a check that
    /// other calls get.
    pub fn should_report(&self) -> bool {
        matches!(self, Self::TooComplex(_) | Self::TooCostly | Self::Busy)
    }
}

impl SchemaCache {
    /// Checks `args` of `account`, the JSON text of an object, against the JSON text of a `schema`.
    /// It does so only if that blocks an event loop for less than a millisecond. `None` means that
    /// the caller must run [`SchemaCache::check`] elsewhere.
    pub fn check_briefly(
        &self,
        account: Account,
        schema: &str,
        args: &str,
    ) -> Option<ArgumentVerdict> {
        if schema.len() > SCHEMA_BYTES_MAX {
            return Some(ArgumentVerdict::Unchecked(UncheckedArguments::TooLarge(schema.len())));
        }
        let compilation = self.lock(|cache| cache.get(&key(schema)))?;
        let compiled = match usable(&compilation, account, args) {
            Ok(compiled) => compiled,
            Err(reason) => return Some(ArgumentVerdict::Unchecked(reason)),
        };
        // A problem is looked up in the schema.
        if args.len().max(schema.len()) > INLINE_BYTES_MAX {
            return None;
        }
        compiled.check(args, CHECK_STEPS_INLINE_MAX, None).ok()
    }

    /// Checks `args` of `account`, the JSON text of an object, against the JSON text of a `schema`,
    /// until `stop` is set. It may take a second, so do not run it on an event loop.
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
        let compilation = self.compiled(schema);
        let compiled = match usable(&compilation, account, args) {
            Ok(compiled) => compiled,
            Err(reason) => return ArgumentVerdict::Unchecked(reason),
        };
        compiled.check(args, CHECK_STEPS_MAX, stop).unwrap_or_else(|stopped| {
            if stopped != CheckStopped::Unwanted {
                compiled.remember_cost(account, args);
            }
            ArgumentVerdict::Unchecked(UncheckedArguments::TooCostly)
        })
    }

    /// Returns the approximate memory for compiling a schema, in bytes; 0 if it is cached.
    pub fn bytes_to_compile(&self, schema: &str) -> usize {
        if self.lock(|cache| cache.get(&key(schema))).is_some() {
            return 0;
        }
        let n_parts = schema.bytes().filter(|byte| *byte == b'{').count();
        let steps_max = usize::try_from(COMPILE_STEPS_MAX).unwrap_or(usize::MAX);
        // The memory of the result, and that of the work.
        2 * n_parts.min(steps_max) * COMPILE_STEP_BYTES
    }

    /// Returns the compiled schema. It is compiled without the lock.
    fn compiled(&self, schema: &str) -> Compilation {
        let key = key(schema);
        if let Some(known) = self.lock(|cache| cache.get(&key)) {
            return known;
        }
        let compiled = Arc::new(CompiledSchema::new(schema));
        let n_bytes = compiled.as_ref().as_ref().map_or(schema.len(), CompiledSchema::n_bytes);
        if n_bytes > VALIDATORS_BYTES_MAX / 4 {
            return compiled;
        }
        let evicted = self.lock(|cache| cache.put(key, &compiled, n_bytes));
        // Without the lock: dropping a large schema takes as long as checks against others.
        drop(evicted);
        compiled
    }

    fn lock<T>(&self, with: impl FnOnce(&mut CachedSchemas) -> T) -> T {
        with(&mut self.schemas.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Debug for SchemaCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{} schemas]", self.lock(|cache| cache.by_key.len()))
    }
}

/// Returns a compiled schema, unless it is too costly to check these arguments of `account`.
fn usable<'a>(
    compilation: &'a Compilation,
    account: Account,
    args: &str,
) -> Result<&'a CompiledSchema, UncheckedArguments> {
    let compiled = compilation.as_ref().as_ref().map_err(Clone::clone)?;
    match compiled.is_too_costly(account, args) {
        true => Err(UncheckedArguments::TooCostly),
        false => Ok(compiled),
    }
}

impl CachedSchemas {
    fn get(&mut self, key: &SchemaKey) -> Option<Compilation> {
        self.clock += 1;
        let cached = self.by_key.get_mut(key)?;
        cached.used = self.clock;
        Some(Arc::clone(&cached.compiled))
    }

    /// Adds a schema, and returns those that are evicted for it.
    fn put(&mut self, key: SchemaKey, compiled: &Compilation, bytes: usize) -> Vec<CachedSchema> {
        self.clock += 1;
        let cached = CachedSchema { compiled: Arc::clone(compiled), bytes, used: self.clock };
        self.bytes += bytes;
        let mut evicted: Vec<CachedSchema> = self.by_key.insert(key, cached).into_iter().collect();
        self.bytes -= evicted.iter().map(|old| old.bytes).sum::<usize>();
        while self.by_key.len() > VALIDATORS_MAX || self.bytes > VALIDATORS_BYTES_MAX {
            // There are only a few hundred, and each new schema adds only one.
            let oldest = self.by_key.iter().min_by_key(|(_, cached)| cached.used);
            let Some(oldest) = oldest.map(|(key, _)| *key) else { break };
            if let Some(old) = self.by_key.remove(&oldest) {
                self.bytes -= old.bytes;
                evicted.push(old);
            }
        }
        evicted
    }
}

#[cfg(test)]
mod tests;
