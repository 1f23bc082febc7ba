//! The tests run the compiled program as the kernel does.

use libc::{MAP_FIXED, MAP_SHARED, MREMAP_FIXED, PROT_EXEC, PROT_NONE};
use seccompiler::sock_filter;

use super::*;

/// The results of the program. Source: seccomp(2).
const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
const KILLED: u32 = libc::SECCOMP_RET_KILL_PROCESS;

/// The architectures as the kernel reports them. Source: linux/audit.h.
const X86_64: u32 = 0xc000_003e;
const AARCH64: u32 = 0xc000_00b7;
const I386: u32 = 0x4000_0003;

/// The bit of a number that marks a call of the x32 interface.
const X32: u32 = 0x4000_0000;

/// A system call as the kernel shows it to the program: `struct seccomp_data`.
struct ObservedCall {
    number: u32,
    architecture: u32,
    arguments: [u64; 6],
}

impl ObservedCall {
    fn word(&self, offset: u32) -> u32 {
        let argument = |offset: u32| {
            let value = self.arguments[offset as usize / 8];
            if offset.is_multiple_of(8) { value as u32 } else { (value >> 32) as u32 }
        };
        match offset {
            0 => self.number,
            4 => self.architecture,
            16.. => argument(offset - 16),
            _ => panic!("the program reads the word at {offset}"),
        }
    }
}

/// Returns the result of the program, with the instructions of linux/bpf_common.h.
fn run(program: &[sock_filter], call: &ObservedCall) -> u32 {
    let (mut at, mut accumulator) = (0_usize, 0_u32);
    loop {
        let sock_filter { code, jt, jf, k } = &program[at];
        at += 1;
        let mut jump = |is_true: bool| at += usize::from(if is_true { *jt } else { *jf });
        match code {
            0x20 => accumulator = call.word(*k),
            0x54 => accumulator &= k,
            0x15 => jump(accumulator == *k),
            0x25 => jump(accumulator > *k),
            0x35 => jump(accumulator >= *k),
            0x05 => at += *k as usize,
            0x06 => return *k,
            _ => panic!("instruction {code:#x}"),
        }
    }
}

fn program(architecture: TargetArch) -> BpfProgram {
    compile(&script_calls(), architecture).unwrap()
}

/// Returns whether a script may make a call on x86_64.
fn is_allowed(number: i64, arguments: &[u64]) -> bool {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let number = number.try_into().unwrap();
    let call = ObservedCall { number, architecture: X86_64, arguments: all };
    match run(&program(TargetArch::x86_64), &call) {
        ALLOWED => true,
        KILLED => false,
        other => panic!("{other:#x}"),
    }
}

#[test]
fn a_call_that_is_not_on_the_list_kills_the_process() {
    let program = program(TargetArch::x86_64);
    let listed: Vec<u32> =
        script_calls().iter().map(|rule| rule.number.try_into().unwrap()).collect();
    for number in (0..2048).filter(|number| !listed.contains(number)) {
        for number in [number, number | X32] {
            for arguments in [[0; 6], [1; 6], [u64::MAX; 6]] {
                let call = ObservedCall { number, architecture: X86_64, arguments };
                assert_eq!(run(&program, &call), KILLED, "{number}");
            }
        }
    }
}

#[test]
fn the_list_is_short_and_has_each_call() {
    let mut numbers: Vec<i64> = script_calls().iter().map(|rule| rule.number).collect();
    numbers.dedup();
    numbers.sort_unstable();
    let n_calls = numbers.len();
    numbers.dedup();
    assert_eq!(numbers.len(), n_calls, "the alternatives of a call stand together");
    assert_eq!(n_calls, 16);
}

#[test]
fn a_call_in_the_form_of_another_architecture_kills_the_process() {
    for (compiled, own, others) in [
        (TargetArch::x86_64, X86_64, [AARCH64, I386, 0]),
        (TargetArch::aarch64, AARCH64, [X86_64, I386, 0]),
    ] {
        let program = program(compiled);
        for number in 0..512 {
            for architecture in others {
                let call = ObservedCall { number, architecture, arguments: [0; 6] };
                assert_eq!(run(&program, &call), KILLED, "{number} of {architecture:#x}");
            }
        }
        let number = libc::SYS_exit_group.try_into().unwrap();
        let call = ObservedCall { number, architecture: own, arguments: [0; 6] };
        assert_eq!(run(&program, &call), ALLOWED);
        let call = ObservedCall { number: number | X32, architecture: own, arguments: [0; 6] };
        assert_eq!(run(&program, &call), KILLED);
    }
}

#[test]
fn a_script_reads_and_writes_descriptor_0_only() {
    for number in [libc::SYS_read, libc::SYS_write] {
        assert!(is_allowed(number, &[0, 4096, 16]));
        for descriptor in [1, 2, 3, 1023, u64::from(u32::MAX), u64::MAX] {
            assert!(!is_allowed(number, &[descriptor, 4096, 16]), "{descriptor}");
        }
    }
}

#[test]
fn a_script_has_private_anonymous_memory_that_is_not_executable() {
    let (data, exec) = (bits(PROT_READ | PROT_WRITE), bits(PROT_EXEC));
    let private = bits(MAP_PRIVATE | MAP_ANONYMOUS);
    let mmap = |protection, flags| is_allowed(libc::SYS_mmap, &[0, 4096, protection, flags]);
    let all = [data, bits(PROT_READ), bits(PROT_WRITE), bits(PROT_NONE)];
    for protection in all {
        assert!(mmap(protection, private));
        assert!(mmap(protection, private | bits(MAP_NORESERVE)));
        assert!(is_allowed(libc::SYS_mprotect, &[4096, 4096, protection]));
    }
    for protection in all.map(|protection| protection | exec) {
        assert!(!mmap(protection, private));
        assert!(!is_allowed(libc::SYS_mprotect, &[4096, 4096, protection]));
    }
    assert!(!mmap(1 << 32, private));
    for flags in [
        bits(MAP_PRIVATE),
        bits(MAP_SHARED | MAP_ANONYMOUS),
        private | bits(MAP_FIXED),
        private | bits(libc::MAP_HUGETLB),
        private | bits(libc::MAP_GROWSDOWN),
        private | (1 << 32),
    ] {
        assert!(!mmap(data, flags), "{flags:#x}");
    }
}

#[test]
fn memory_moves_only_to_an_address_that_the_kernel_chooses() {
    let mremap = |flags| is_allowed(libc::SYS_mremap, &[4096, 4096, 8192, bits(flags), 0]);
    assert!(mremap(0) && mremap(MREMAP_MAYMOVE));
    assert!(!mremap(MREMAP_MAYMOVE | MREMAP_FIXED));
    assert!(!mremap(MREMAP_MAYMOVE | libc::MREMAP_DONTUNMAP));
}

#[test]
fn advice_and_futexes_are_limited_to_those_of_an_allocator_and_a_lock() {
    let madvise = |advice| is_allowed(libc::SYS_madvise, &[4096, 4096, bits(advice)]);
    assert!(madvise(MADV_DONTNEED) && madvise(MADV_FREE));
    for advice in [libc::MADV_MERGEABLE, libc::MADV_HWPOISON, libc::MADV_WILLNEED, 5, 12] {
        assert!(!madvise(advice), "{advice}");
    }
    let futex = |operation| is_allowed(libc::SYS_futex, &[4096, bits(operation)]);
    for operation in [libc::FUTEX_WAIT, FUTEX_WAKE, FUTEX_WAIT_BITSET, FUTEX_WAKE_BITSET] {
        assert!(futex(operation) && futex(operation | FUTEX_PRIVATE_FLAG), "{operation}");
    }
    for operation in [libc::FUTEX_REQUEUE, libc::FUTEX_LOCK_PI, libc::FUTEX_CMP_REQUEUE_PI, 8, 11] {
        assert!(!futex(operation) && !futex(operation | FUTEX_PRIVATE_FLAG), "{operation}");
    }
}

#[test]
fn a_rule_without_conditions_replaces_its_alternatives() {
    let mut rules = script_calls();
    rules.push(SystemCallRule::any(libc::SYS_mprotect));
    let program = compile(&rules, TargetArch::x86_64).unwrap();
    let number = libc::SYS_mprotect.try_into().unwrap();
    let arguments = [4096, 4096, bits(PROT_EXEC), 0, 0, 0];
    let call = ObservedCall { number, architecture: X86_64, arguments };
    assert_eq!(run(&program, &call), ALLOWED);
}
