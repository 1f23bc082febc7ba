//! The system calls that the code of a script needs, and their compilation to a filter.
//!
//! The list is for one thread that computes, allocates memory, and reads and writes descriptor 0.
//! A call that is not on it kills the process: untrusted code that makes one has left its engine.

use std::collections::BTreeMap;

use libc::{
    FUTEX_CLOCK_REALTIME, FUTEX_PRIVATE_FLAG, FUTEX_WAIT_BITSET, FUTEX_WAKE, FUTEX_WAKE_BITSET,
    MADV_DONTNEED, MADV_FREE, MAP_ANONYMOUS, MAP_NORESERVE, MAP_PRIVATE, MAP_STACK, MREMAP_MAYMOVE,
    PROT_READ, PROT_WRITE, c_int,
};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

/// A system call that is allowed if all its conditions hold. Several rules for one call are
/// alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemCallRule {
    /// The number of the call on this architecture.
    pub number: i64,
    /// The conditions on its arguments.
    pub conditions: Vec<ArgumentCondition>,
}

/// A condition on one argument: the bits of `mask` must equal those of `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentCondition {
    /// The index of the argument, from 0 on.
    pub argument: u8,
    /// The bits that are compared.
    pub mask: u64,
    /// The value of these bits.
    pub value: u64,
}

impl SystemCallRule {
    /// Allows a call with any arguments.
    pub fn any(number: i64) -> Self {
        Self { number, conditions: Vec::new() }
    }

    fn with(number: i64, conditions: impl Into<Vec<ArgumentCondition>>) -> Self {
        Self { number, conditions: conditions.into() }
    }
}

/// Returns the condition that a 32-bit argument is `value`. The kernel ignores the upper half.
fn equals(argument: u8, value: c_int) -> ArgumentCondition {
    ArgumentCondition { argument, mask: u64::from(u32::MAX), value: bits(value) }
}

/// Returns the condition that a 64-bit argument is `value`, except for the bits `free`.
fn equals_except(argument: u8, value: c_int, free: c_int) -> ArgumentCondition {
    ArgumentCondition { argument, mask: !bits(free), value: bits(value) }
}

/// Returns a flag, all of which are positive, in the width of an argument.
fn bits(flag: c_int) -> u64 {
    u64::from(flag.unsigned_abs())
}

/// Returns the calls of a script: memory, time, randomness, and descriptor 0.
///
/// No memory is executable, shared, mapped from a file or mapped over other memory. A mapping may
/// move, and not to a chosen address. The advice on memory is to give it back. A futex waits or
/// wakes; the operations for priorities, which had more defects, are not needed by one thread.
pub(super) fn script_calls() -> Vec<SystemCallRule> {
    let data = |argument| equals_except(argument, 0, PROT_READ | PROT_WRITE);
    let private = equals_except(3, MAP_PRIVATE | MAP_ANONYMOUS, MAP_NORESERVE | MAP_STACK);
    let futex = |operation, free| {
        let conditions = [equals_except(1, operation, FUTEX_PRIVATE_FLAG | free)];
        SystemCallRule::with(libc::SYS_futex, conditions)
    };
    let advice = |advice| SystemCallRule::with(libc::SYS_madvise, [equals(2, advice)]);
    let mut rules = vec![
        SystemCallRule::with(libc::SYS_read, [equals(0, 0)]),
        SystemCallRule::with(libc::SYS_write, [equals(0, 0)]),
        SystemCallRule::with(libc::SYS_mmap, [data(2), private]),
        SystemCallRule::with(libc::SYS_mprotect, [data(2)]),
        SystemCallRule::with(libc::SYS_mremap, [equals_except(3, 0, MREMAP_MAYMOVE)]),
        advice(MADV_DONTNEED),
        advice(MADV_FREE),
        // FUTEX_WAIT is 0.
        futex(0, FUTEX_WAKE),
        futex(FUTEX_WAIT_BITSET, FUTEX_CLOCK_REALTIME),
        futex(FUTEX_WAKE_BITSET, 0),
    ];
    let unconditional = [
        libc::SYS_brk,
        libc::SYS_clock_gettime,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_getrandom,
        libc::SYS_gettimeofday,
        libc::SYS_munmap,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
    ];
    rules.extend(unconditional.map(SystemCallRule::any));
    rules
}

/// Compiles rules to the program that the kernel runs at each system call.
///
/// The program kills a process that makes another call, or that makes one in the form of another
/// architecture.
pub(super) fn compile(
    rules: &[SystemCallRule],
    architecture: TargetArch,
) -> Result<BpfProgram, BackendError> {
    let mut alternatives: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for rule in rules.iter().filter(|rule| !rule.conditions.is_empty()) {
        let conditions: Result<Vec<_>, _> = rule.conditions.iter().map(condition).collect();
        alternatives.entry(rule.number).or_default().push(SeccompRule::new(conditions?)?);
    }
    // No alternatives stand for any arguments.
    let unconditional = rules.iter().filter(|rule| rule.conditions.is_empty());
    alternatives.extend(unconditional.map(|rule| (rule.number, Vec::new())));
    let (otherwise, allowed) = (SeccompAction::KillProcess, SeccompAction::Allow);
    SeccompFilter::new(alternatives, otherwise, allowed, architecture)?.try_into()
}

fn condition(condition: &ArgumentCondition) -> Result<SeccompCondition, BackendError> {
    let &ArgumentCondition { argument, mask, value } = condition;
    let comparison = SeccompCmpOp::MaskedEq(mask);
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, comparison, value)
}

#[cfg(test)]
mod tests;
