//! The parties that capacity is shared between.
//!
//! A share belongs to an account, and inside an account to a member. Two sessions of one user are
//! two members of one account, so a user with a thousand sessions still has one share.

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
    /// metamcp itself: list refreshes, probes, background calls.
    Service,
    /// All clients with the token of this fingerprint.
    Token(u64),
    /// The user with this id on this host.
    User(u32),
    /// All clients without a known user.
    Unknown,
}

/// A party that uses an account.
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

    /// Returns the holder of an unidentified client.
    pub const fn unknown() -> Self {
        Self { account: Account::Unknown, member: AccountMember::Whole }
    }

    /// Returns `member` of the same account.
    #[must_use]
    pub const fn member(self, member: AccountMember) -> Self {
        Self { member, ..self }
    }
}
