//! The parties that capacity is shared between.
//!
//! A share belongs to an account, and inside an account to a member. Two sessions of one user are two
//! members of one account, so a user who opens a thousand sessions still has one share.

/// The party that a connection, a stream or a request counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    /// The account.
    pub account: Account,
    /// The member of the account.
    pub member: AccountMember,
}

/// The party that a share belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Account {
    /// metamcp itself: lists that it refreshes, probes, calls that run in the background.
    Service,
    /// All clients that bring the token with this fingerprint.
    Token(u64),
    /// The user with this number on this host.
    User(u32),
    /// All clients whose user the kernel does not tell.
    Unknown,
}

/// One of the parties that use the same account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccountMember {
    /// The account as a whole.
    Whole,
    /// The client session with this number.
    Session(u64),
    /// The connection with this number, whose client has no session.
    Connection(u64),
}

impl Holder {
    /// metamcp itself.
    pub const SERVICE: Self = Self { account: Account::Service, member: AccountMember::Whole };

    /// Returns the party of a client about which nothing is known.
    pub const fn unknown() -> Self {
        Self { account: Account::Unknown, member: AccountMember::Whole }
    }

    /// Returns `member` of the same account.
    #[must_use]
    pub const fn member(self, member: AccountMember) -> Self {
        Self { member, ..self }
    }
}
