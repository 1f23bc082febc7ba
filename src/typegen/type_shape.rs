//! A type of TypeScript, as far as schemas need one.
//!
//! Pure.

use crate::config::defaults;

/// A type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum TypeShape {
    /// Anything.
    Unknown,
    /// Nothing.
    Never,
    /// A word of the language.
    Word(&'static str),
    /// One value, as it is written.
    Literal(String),
    /// The type at this place of the list of named types.
    Reference(usize),
    /// A list of one type.
    Array(Box<TypeShape>),
    /// A list of several types: those that must be there, those that may, and of what the rest is.
    Tuple { required: Vec<TypeShape>, optional: Vec<TypeShape>, rest: Option<Box<TypeShape>> },
    /// An object.
    Object { members: Vec<ObjectMember>, others: Option<Box<TypeShape>> },
    /// One of several.
    Union(Vec<TypeShape>),
    /// All of several.
    Intersection(Vec<TypeShape>),
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ObjectMember {
    /// Its name, whatever is in it.
    pub(super) name: String,
    /// It may be missing.
    pub(super) is_optional: bool,
    /// What it is.
    pub(super) kind: TypeShape,
    /// What is told of it.
    pub(super) about: TypeDoc,
}

/// What is told of a type or a member, beyond its type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct TypeDoc {
    /// In words.
    pub(super) description: Option<String>,
    /// With tags: `@format date-time`.
    pub(super) tags: Vec<String>,
}

/// A type with a name.
#[derive(Clone, Debug)]
pub(super) struct NamedType {
    /// What it is called.
    pub(super) name: String,
    /// What is told of it.
    pub(super) about: TypeDoc,
    /// The text of the type.
    pub(super) text: String,
}

impl TypeShape {
    pub(super) const STRING: Self = Self::Word("string");
    pub(super) const NUMBER: Self = Self::Word("number");
    pub(super) const BOOLEAN: Self = Self::Word("boolean");
    pub(super) const NULL: Self = Self::Word("null");

    /// Returns an object of which nothing is known.
    pub(super) fn any_object() -> Self {
        Self::Object { members: Vec::new(), others: Some(Box::new(Self::Unknown)) }
    }

    /// Returns one of `all`.
    pub(super) fn any_of(all: impl IntoIterator<Item = Self>) -> Self {
        let mut found = Vec::new();
        for kind in all {
            match kind {
                Self::Unknown => return Self::Unknown,
                Self::Never => {}
                Self::Union(inner) => found.extend(inner),
                other => found.push(other),
            }
        }
        dedup(&mut found);
        match found.len() {
            0 => Self::Never,
            1 => found.remove(0),
            _ => Self::Union(found),
        }
    }

    /// Returns what is all of `all` at once.
    pub(super) fn all_of(all: impl IntoIterator<Item = Self>) -> Self {
        let mut found = Vec::new();
        for kind in all {
            match kind {
                Self::Never => return Self::Never,
                Self::Unknown => {}
                Self::Intersection(inner) => found.extend(inner),
                other => found.push(other),
            }
        }
        dedup(&mut found);
        match found.len() {
            0 => Self::Unknown,
            1 => found.remove(0),
            _ => Self::Intersection(found),
        }
    }

    /// Replaces references that stand in it alone, not in an object or a list: what refers to itself
    /// so has no meaning.
    pub(super) fn replace_bare(self, replace: &mut impl FnMut(usize) -> Self) -> Self {
        match self {
            Self::Reference(to) => replace(to),
            Self::Union(all) => {
                Self::any_of(all.into_iter().map(|kind| kind.replace_bare(replace)))
            }
            Self::Intersection(all) => {
                Self::all_of(all.into_iter().map(|kind| kind.replace_bare(replace)))
            }
            other @ (Self::Unknown
            | Self::Never
            | Self::Word(_)
            | Self::Literal(_)
            | Self::Array(_)
            | Self::Tuple { .. }
            | Self::Object { .. }) => other,
        }
    }

    /// Calls `found` for each reference that stands in it alone.
    pub(super) fn bare(&self, found: &mut impl FnMut(usize)) {
        match self {
            Self::Reference(to) => found(*to),
            Self::Union(all) | Self::Intersection(all) => {
                all.iter().for_each(|kind| kind.bare(found));
            }
            Self::Unknown
            | Self::Never
            | Self::Word(_)
            | Self::Literal(_)
            | Self::Array(_)
            | Self::Tuple { .. }
            | Self::Object { .. } => {}
        }
    }

    /// Returns it with intersections that come to no more alternatives than compilers take; `of` tells
    /// how many a reference has.
    pub(super) fn bounded(self, of: &impl Fn(usize) -> usize) -> (Self, usize) {
        let most = defaults::TYPEGEN_ALTERNATIVES_MAX;
        match self {
            Self::Reference(to) => (Self::Reference(to), of(to)),
            Self::Union(all) => {
                let mut n_all = 0_usize;
                let bounded: Vec<Self> = all
                    .into_iter()
                    .map(|kind| {
                        let (kind, n) = kind.bounded(of);
                        n_all = n_all.saturating_add(n);
                        kind
                    })
                    .collect();
                (Self::any_of(bounded), n_all)
            }
            Self::Intersection(all) => {
                let mut n_all = 1_usize;
                let mut kept = Vec::new();
                for kind in all {
                    let (kind, n) = kind.bounded(of);
                    let product = n_all.saturating_mul(n.max(1));
                    if kept.is_empty() || n <= 1 || product <= most {
                        n_all = product;
                        kept.push(kind);
                    }
                }
                (Self::all_of(kept), n_all)
            }
            Self::Array(of_what) => (Self::Array(Box::new(of_what.bounded(of).0)), 1),
            Self::Tuple { required, optional, rest } => {
                let inner =
                    |all: Vec<Self>| all.into_iter().map(|kind| kind.bounded(of).0).collect();
                let rest = rest.map(|rest| Box::new(rest.bounded(of).0));
                (Self::Tuple { required: inner(required), optional: inner(optional), rest }, 1)
            }
            Self::Object { members, others } => {
                let members = members.into_iter().map(|member| {
                    let kind = member.kind.bounded(of).0;
                    ObjectMember { kind, ..member }
                });
                let members = members.collect();
                let others = others.map(|others| Box::new(others.bounded(of).0));
                (Self::Object { members, others }, 1)
            }
            other @ (Self::Unknown | Self::Never | Self::Word(_) | Self::Literal(_)) => (other, 1),
        }
    }
}

/// Leaves the first of those that are the same.
fn dedup(all: &mut Vec<TypeShape>) {
    let mut seen = std::collections::HashSet::new();
    all.retain(|kind| seen.insert(kind.clone()));
}
