//! One schema as it was understood.

use std::sync::atomic::{AtomicUsize, Ordering};

use jsonschema::{
    Keyword, PatternOptions, ValidationError, ValidationOptions, Validator,
    error::ValidationErrorKind, paths::Location,
};
use serde_json::{Map, Value};

use super::{
    Misfit, Unchecked, Verdict,
    metered::{Costs, Metered, MeteredValue},
    prepared::{MARK, Prepared},
    problem,
    steps::{Stopped, spend, within},
};
use crate::{
    compute::StopFlag,
    config::defaults::{
        COMPILE_STEPS_MAX, PATTERN_BACKTRACKS_MAX, PATTERN_COMPILED_BYTES_MAX, PROBLEMS_MAX,
        QUOTE_BYTES_MAX,
    },
    redact,
};

/// A schema as it was understood.
pub(super) struct Compiled {
    validator: Validator<Metered>,
    /// As its server wrote it.
    schema: Value,
    costs: Costs,
    /// The length of the shortest arguments that took too many steps.
    costly_bytes: AtomicUsize,
}

/// The keyword that spends a step when it is compiled, and does nothing else.
struct Mark;

impl<'i> Keyword<'i, Metered> for Mark {
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
) -> Result<Box<dyn for<'i> Keyword<'i, Metered>>, ValidationError<'a>> {
    spend(1 + path.as_str().len() as u64 / 64);
    Ok(Box::new(Mark))
}

impl Compiled {
    /// Reads a schema: as one of draft 2020-12, unless it says which other one it is of.
    pub(super) fn new(text: &str) -> Result<Self, Unchecked> {
        let schema: Value = serde_json::from_str(text).map_err(|error| unusable(&error))?;
        let Prepared { schema: prepared, costs } = Prepared::new(schema.clone())?;
        let patterns = PatternOptions::regex()
            .size_limit(PATTERN_COMPILED_BYTES_MAX)
            .dfa_size_limit(PATTERN_COMPILED_BYTES_MAX);
        // Only these can look around, which common patterns of addresses do.
        let looking = PatternOptions::fancy_regex()
            .backtrack_limit(PATTERN_BACKTRACKS_MAX)
            .size_limit(PATTERN_COMPILED_BYTES_MAX)
            .dfa_size_limit(PATTERN_COMPILED_BYTES_MAX);
        let options =
            || ValidationOptions::<_, Metered>::default().offline().with_keyword(MARK, mark);
        let (built, _) = within(COMPILE_STEPS_MAX, None, || {
            options()
                .with_pattern_options(patterns)
                .build(&prepared)
                .or_else(|_| options().with_pattern_options(looking).build(&prepared))
        });
        let validator = built.map_err(|_| Unchecked::TooCostly)?;
        let validator = validator.map_err(|error| unusable(&error.masked()))?;
        Ok(Self { validator, schema, costs, costly_bytes: AtomicUsize::new(usize::MAX) })
    }

    /// Tells whether arguments of about this length took too many steps before.
    pub(super) fn is_too_costly(&self, args: &str) -> bool {
        args.len().saturating_mul(2) >= self.costly_bytes.load(Ordering::Relaxed)
    }

    /// Remembers that these arguments took too many steps.
    pub(super) fn remember_cost(&self, args: &str) {
        self.costly_bytes.fetch_min(args.len(), Ordering::Relaxed);
    }

    /// Holds `args` against it in so many `steps`.
    pub(super) fn check(
        &self,
        args: &str,
        steps: u64,
        stop: Option<&StopFlag>,
    ) -> Result<Verdict, Stopped> {
        let Ok(args) = serde_json::from_str::<Value>(args) else {
            return Ok(Verdict::Unchecked(Unchecked::Unreadable));
        };
        within(steps, stop, || self.verdict(&args)).0
    }

    fn verdict(&self, args: &Value) -> Verdict {
        let mut problems = Vec::new();
        for error in self.validator.iter_errors(MeteredValue::root(args, self.costs)) {
            // Nobody knows whether it matches: the server may find out.
            if matches!(error.kind(), ValidationErrorKind::BacktrackLimitExceeded { .. }) {
                continue;
            }
            problem::add(&error, &self.schema, &mut problems);
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
}

fn unusable(error: &dyn std::fmt::Display) -> Unchecked {
    Unchecked::Unusable(redact::cut(&error.to_string(), QUOTE_BYTES_MAX).into())
}
