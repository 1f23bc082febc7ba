//! A compiled schema.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jsonschema::{
    Keyword, PatternOptions, ValidationError, ValidationOptions, Validator,
    error::ValidationErrorKind, paths::Location,
};
use serde_json::{Map, Value};

use super::{
    ArgumentMismatch, ArgumentVerdict, UncheckedArguments, argument_problem,
    bounded_schema::{BoundedSchema, MARK},
    metered_arguments::{MeteredArguments, MeteredValue, StepCosts},
    step_budget::{CheckStopped, run_with, spend},
};
use crate::{
    capacity_holder::Account,
    compute_pool::StopFlag,
    config::defaults::{
        CHECK_STEPS_INLINE_MAX, COMPILE_STEP_BYTES, COMPILE_STEPS_MAX, COSTLY_ACCOUNTS_MAX,
        PATTERN_BACKTRACKS_MAX, PATTERN_COMPILED_BYTES_MAX, PATTERN_STATE_BYTES,
        PATTERN_STATES_BYTES_MAX, PROBLEMS_MAX, QUOTE_BYTES_MAX,
    },
    redact,
};

pub(super) struct CompiledSchema {
    validator: Validator<MeteredArguments>,
    /// The server's text. A tree would take ten times as much, and only problems need one.
    schema: Box<str>,
    costs: StepCosts,
    /// The fields that arguments may have, if the schema names all of them.
    fields: BTreeSet<String>,
    /// The approximate memory that it takes, in bytes.
    n_bytes: usize,
    /// The length of the shortest arguments of each account that took too many steps. By account,
    /// so that no account can disable the checks of another one.
    costly: Mutex<Vec<(Account, usize)>>,
}

/// The keyword that spends a step when it is compiled, and does nothing else.
struct MarkKeyword;

impl<'i> Keyword<'i, MeteredArguments> for MarkKeyword {
    fn validate(&self, _: MeteredValue<'i>) -> Result<(), ValidationError<'i>> {
        Ok(())
    }

    fn is_valid(&self, _: MeteredValue<'i>) -> bool {
        true
    }
}

fn mark<'a>(
    _: &'a Map<String, Value>,
    _: &'a Value,
    path: Location,
) -> Result<Box<dyn for<'i> Keyword<'i, MeteredArguments>>, ValidationError<'a>> {
    spend(1 + path.as_str().len() as u64 / 64);
    Ok(Box::new(MarkKeyword))
}

impl CompiledSchema {
    /// Compiles a schema, as draft 2020-12 unless it names another draft.
    pub(super) fn new(text: &str) -> Result<Self, UncheckedArguments> {
        let schema: Value = serde_json::from_str(text).map_err(|error| unusable(&error))?;
        let fields = fields_of(&schema);
        let (prepared, _) = run_with(COMPILE_STEPS_MAX, None, || BoundedSchema::new(schema));
        let prepared = prepared.map_err(|_| UncheckedArguments::TooCostly)?;
        let BoundedSchema { schema: prepared, costs, patterns_weight } =
            prepared.map_err(UncheckedArguments::TooComplex)?;
        let patterns = PatternOptions::regex()
            .size_limit(PATTERN_COMPILED_BYTES_MAX)
            .dfa_size_limit(PATTERN_STATES_BYTES_MAX);
        // Only these support look-around, which common patterns of addresses use.
        let with_lookaround = PatternOptions::fancy_regex()
            .backtrack_limit(PATTERN_BACKTRACKS_MAX)
            .size_limit(PATTERN_COMPILED_BYTES_MAX)
            .dfa_size_limit(PATTERN_STATES_BYTES_MAX);
        let options = || {
            ValidationOptions::<_, MeteredArguments>::default().offline().with_keyword(MARK, mark)
        };
        let (built, steps) = run_with(COMPILE_STEPS_MAX, None, || {
            options()
                .with_pattern_options(patterns)
                .build(&prepared)
                .or_else(|_| options().with_pattern_options(with_lookaround).build(&prepared))
        });
        let validator = built.map_err(|_| UncheckedArguments::TooCostly)?;
        let validator = validator.map_err(|error| unusable(&error.masked()))?;
        let n_bytes = text.len()
            + fields.iter().map(|name| name.len() + size_of::<String>()).sum::<usize>()
            + usize::try_from(steps).unwrap_or(usize::MAX).saturating_mul(COMPILE_STEP_BYTES)
            + usize::try_from(patterns_weight)
                .unwrap_or(usize::MAX)
                .saturating_mul(PATTERN_STATE_BYTES);
        Ok(Self {
            validator,
            schema: text.into(),
            costs,
            fields,
            n_bytes,
            costly: Mutex::default(),
        })
    }

    /// Returns the approximate memory that it takes, in bytes.
    pub(super) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Returns whether arguments of `account` of about this length took too many steps before.
    pub(super) fn is_too_costly(&self, account: Account, args: &str) -> bool {
        let costly = self.costly();
        let known = costly.iter().find(|(known, _)| *known == account);
        known.is_some_and(|(_, n_bytes)| args.len().saturating_mul(2) >= *n_bytes)
    }

    /// Remembers that these arguments of `account` took too many steps.
    pub(super) fn remember_cost(&self, account: Account, args: &str) {
        let mut costly = self.costly();
        if let Some((_, n_bytes)) = costly.iter_mut().find(|(known, _)| *known == account) {
            *n_bytes = args.len().min(*n_bytes);
            return;
        }
        if costly.len() == COSTLY_ACCOUNTS_MAX {
            costly.remove(0);
        }
        costly.push((account, args.len()));
    }

    fn costly(&self) -> MutexGuard<'_, Vec<(Account, usize)>> {
        // Held for statements on plain data.
        self.costly.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks `args` in at most `steps` steps.
    pub(super) fn check(
        &self,
        args: &str,
        steps: u64,
        stop: Option<&StopFlag>,
    ) -> Result<ArgumentVerdict, CheckStopped> {
        let Ok(args) = serde_json::from_str::<Value>(args) else {
            return Ok(ArgumentVerdict::Unchecked(UncheckedArguments::Unreadable));
        };
        let verdict = run_with(steps, stop, || self.verdict(&args)).0?;
        if verdict != ArgumentVerdict::Fits {
            return Ok(verdict);
        }
        // A guess, which is left out if it costs too much.
        let find_doubts = || argument_problem::misspelt(&args, &self.fields);
        Ok(match run_with(CHECK_STEPS_INLINE_MAX, stop, find_doubts).0 {
            Ok(doubts) if !doubts.is_empty() => ArgumentVerdict::Doubtful(doubts),
            Ok(_) | Err(_) => ArgumentVerdict::Fits,
        })
    }

    fn verdict(&self, args: &Value) -> ArgumentVerdict {
        let (mut problems, mut schema) = (Vec::new(), None);
        for error in self.validator.iter_errors(MeteredValue::root(args, self.costs)) {
            // The match is undecided, so the server decides.
            if matches!(error.kind(), ValidationErrorKind::BacktrackLimitExceeded { .. }) {
                continue;
            }
            let schema = schema.get_or_insert_with(|| {
                spend(self.schema.len() as u64 / 16);
                serde_json::from_str::<Value>(&self.schema).unwrap_or_default()
            });
            argument_problem::add(&error, schema, &mut problems);
            if problems.len() > PROBLEMS_MAX {
                break;
            }
        }
        if problems.is_empty() {
            return ArgumentVerdict::Fits;
        }
        let has_more = problems.len() > PROBLEMS_MAX;
        problems.truncate(PROBLEMS_MAX);
        ArgumentVerdict::Wrong(ArgumentMismatch { problems, has_more })
    }
}

/// Returns the fields that a schema names; empty if other keywords may allow more.
fn fields_of(schema: &Value) -> BTreeSet<String> {
    const MORE: [&str; 11] = [
        "$ref",
        "$dynamicRef",
        "$recursiveRef",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "dependencies",
        "dependentSchemas",
        "patternProperties",
        "propertyNames",
    ];
    let properties = schema.get("properties").and_then(Value::as_object);
    // With `additionalProperties`, it is a map on purpose.
    let is_closed = MORE.iter().all(|more| schema.get(more).is_none())
        && schema.get("additionalProperties").is_none_or(|more| *more == false);
    properties.filter(|_| is_closed).into_iter().flat_map(Map::keys).cloned().collect()
}

fn unusable(error: &dyn std::fmt::Display) -> UncheckedArguments {
    UncheckedArguments::Unusable(redact::cut(&error.to_string(), QUOTE_BYTES_MAX).into())
}
