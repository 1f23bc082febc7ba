//! Attempts to reach other processes, the network and other rights.

use libc::{AF_INET, AF_NETLINK, AF_UNIX, RLIMIT_NOFILE, SIGCHLD, SOCK_STREAM};

use crate::attempt::{
    Attempt,
    Refusal::{Always, Landlock},
    Scenery, flag,
};

const STREAM: usize = flag(SOCK_STREAM);

/// Capabilities in the form of capset(2): a header of version 3, and all bits twice.
fn all_capabilities(s: &Scenery) -> [usize; 6] {
    let header = s.stored([0x2008_0522, u64::MAX, u64::MAX, u64::MAX]);
    [header, header + 8, 0, 0, 0, 0]
}

/// One range of memory here and one of the parent, as process_vm_readv(2) takes them.
fn memory_of_parent(s: &Scenery) -> [usize; 6] {
    let page = s.page() as u64;
    let ranges = s.stored([page + 512, 8, page, 8]);
    [s.parent, ranges, 1, ranges + 16, 1, 0]
}

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt::new("socket_inet", libc::SYS_socket, |_| [flag(AF_INET), STREAM, 0, 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("socket_unix", libc::SYS_socket, |_| [flag(AF_UNIX), STREAM, 0, 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("socket_netlink", libc::SYS_socket, |_| {
        [flag(AF_NETLINK), flag(libc::SOCK_RAW), 0, 0, 0, 0]
    })
    .possible()
    .refused(Always),
    Attempt::new("socketpair", libc::SYS_socketpair, |s| {
        [flag(AF_UNIX), STREAM, 0, s.page(), 0, 0]
    })
    .possible()
    .refused(Always),
    Attempt::new("connect", libc::SYS_connect, |s| {
        [0, s.stored([u64::from(AF_UNIX as u16)]), 8, 0, 0, 0]
    }),
    Attempt::new("bind", libc::SYS_bind, |s| {
        [0, s.stored([u64::from(AF_UNIX as u16)]), 2, 0, 0, 0]
    }),
    Attempt::new("listen", libc::SYS_listen, |_| [0, 1, 0, 0, 0, 0]),
    Attempt::new("accept4", libc::SYS_accept4, |_| [0; 6]).refused(Always),
    Attempt::new("sendto", libc::SYS_sendto, |s| [0, s.file(), 1, 0, 0, 0]),
    Attempt::new("sendmsg", libc::SYS_sendmsg, |s| [0, s.page(), 0, 0, 0, 0]),
    Attempt::new("recvfrom", libc::SYS_recvfrom, |s| [0, s.page(), 1, 0, 0, 0]),
    Attempt::new("setsockopt", libc::SYS_setsockopt, |s| [0, 1, 2, s.page(), 4, 0]),
    Attempt::new("shutdown", libc::SYS_shutdown, |_| [0; 6]),
    Attempt::new("clone", libc::SYS_clone, |_| [flag(SIGCHLD), 0, 0, 0, 0, 0]),
    Attempt::new("clone_thread", libc::SYS_clone, |s| {
        let flags = libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_THREAD;
        [flag(flags), s.page() + 8192, 0, 0, 0, 0]
    }),
    Attempt::new("clone3", libc::SYS_clone3, |s| {
        [s.stored([0, 0, 0, 0, SIGCHLD as u64, 0, 0, 0]), 64, 0, 0, 0, 0]
    }),
    // Signal 0 is none, and passes the same checks.
    Attempt::new("kill", libc::SYS_kill, |s| [s.parent, 0, 0, 0, 0, 0])
        .possible()
        .refused(Landlock(6)),
    Attempt::new("tkill", libc::SYS_tkill, |s| [s.own, 0, 0, 0, 0, 0]).possible(),
    Attempt::new("tgkill", libc::SYS_tgkill, |s| [s.parent, s.parent, 0, 0, 0, 0])
        .possible()
        .refused(Landlock(6)),
    Attempt::new("rt_sigqueueinfo", libc::SYS_rt_sigqueueinfo, |s| {
        [s.parent, 0, s.page(), 0, 0, 0]
    })
    .refused(Always),
    Attempt::new("pidfd_open", libc::SYS_pidfd_open, |s| [s.parent, 0, 0, 0, 0, 0])
        .possible()
        .refused(Always),
    Attempt::new("pidfd_send_signal", libc::SYS_pidfd_send_signal, |_| [3, 0, 0, 0, 0, 0])
        .refused(Always),
    Attempt::new("pidfd_getfd", libc::SYS_pidfd_getfd, |_| [3, 0, 0, 0, 0, 0]).refused(Always),
    Attempt::new("ptrace", libc::SYS_ptrace, |s| {
        [libc::PTRACE_SEIZE as usize, s.parent, 0, 0, 0, 0]
    })
    .refused(Always),
    Attempt::new("process_vm_readv", libc::SYS_process_vm_readv, memory_of_parent).refused(Always),
    Attempt::new("process_vm_writev", libc::SYS_process_vm_writev, memory_of_parent)
        .refused(Always),
    Attempt::new("kcmp", libc::SYS_kcmp, |s| [s.parent, s.own, 1, 0, 0, 0]).refused(Always),
    Attempt::new("prlimit64_raises", libc::SYS_prlimit64, |s| {
        [0, RLIMIT_NOFILE as usize, s.stored([64, 64]), 0, 0, 0]
    })
    .possible()
    .refused(Always),
    Attempt::new("setrlimit_raises", libc::SYS_setrlimit, |s| {
        [RLIMIT_NOFILE as usize, s.stored([64, 64]), 0, 0, 0, 0]
    })
    .possible()
    .refused(Always),
    Attempt::new("setuid", libc::SYS_setuid, |_| [1, 0, 0, 0, 0, 0]).refused(Always),
    Attempt::new("setgroups", libc::SYS_setgroups, |_| [0; 6]).refused(Always),
    Attempt::new("capset", libc::SYS_capset, all_capabilities).refused(Always),
    Attempt::new("unshare_user", libc::SYS_unshare, |_| [flag(libc::CLONE_NEWUSER), 0, 0, 0, 0, 0]),
    Attempt::new("unshare_mount", libc::SYS_unshare, |_| [flag(libc::CLONE_NEWNS), 0, 0, 0, 0, 0])
        .refused(Always),
    Attempt::new("setns", libc::SYS_setns, |_| [3, 0, 0, 0, 0, 0]).refused(Always),
    Attempt::new("setsid", libc::SYS_setsid, |_| [0; 6]).possible(),
    Attempt::new("personality", libc::SYS_personality, |_| [0xffff_ffff, 0, 0, 0, 0, 0]).possible(),
    Attempt::new("prctl", libc::SYS_prctl, |_| [flag(libc::PR_GET_DUMPABLE), 0, 0, 0, 0, 0])
        .possible(),
    Attempt::new("prctl_dumpable", libc::SYS_prctl, |_| {
        [flag(libc::PR_SET_DUMPABLE), 1, 0, 0, 0, 0]
    })
    .possible(),
    Attempt::new("seccomp", libc::SYS_seccomp, |s| {
        let action = u64::from(libc::SECCOMP_RET_ALLOW);
        [libc::SECCOMP_GET_ACTION_AVAIL as usize, 0, s.stored([action]), 0, 0, 0]
    })
    .possible(),
    Attempt::new("landlock", libc::SYS_landlock_create_ruleset, |_| [0, 0, 1, 0, 0, 0]).possible(),
    Attempt::new("sched_setaffinity", libc::SYS_sched_setaffinity, |s| {
        [0, 8, s.stored([u64::MAX]), 0, 0, 0]
    })
    .possible(),
    Attempt::new("sched_yield", libc::SYS_sched_yield, |_| [0; 6]).possible(),
    Attempt::new("setpriority", libc::SYS_setpriority, |_| [0, 0, flag(-20), 0, 0, 0])
        .refused(Always),
    Attempt::new("getpid", libc::SYS_getpid, |_| [0; 6]).possible(),
    Attempt::new("wait4", libc::SYS_wait4, |_| [0, 0, 1, 0, 0, 0]),
    Attempt::new("rt_sigaction", libc::SYS_rt_sigaction, |_| [flag(libc::SIGTERM), 0, 0, 8, 0, 0])
        .possible(),
    Attempt::new("rt_sigprocmask", libc::SYS_rt_sigprocmask, |_| [0, 0, 0, 8, 0, 0]).possible(),
    Attempt::new("timer_create", libc::SYS_timer_create, |s| [0, 0, s.page(), 0, 0, 0]).possible(),
    Attempt::new("timer_settime", libc::SYS_timer_settime, |s| [0, 0, s.page(), 0, 0, 0]),
    Attempt::new("setitimer", libc::SYS_setitimer, |s| [0, s.stored([0, 0, 1000, 0]), 0, 0, 0, 0])
        .possible(),
    Attempt::new("timerfd_create", libc::SYS_timerfd_create, |_| [0; 6]).possible().refused(Always),
    Attempt::new("nanosleep", libc::SYS_nanosleep, |s| [s.stored([0, 0]), 0, 0, 0, 0, 0])
        .possible(),
];
