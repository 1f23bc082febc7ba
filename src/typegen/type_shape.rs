//! The TypeScript types that schemas need. Pure.

use std::collections::HashSet;

use crate::config::defaults;

/// A type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum TypeShape {
    /// Any value.
    Unknown,
    /// No value.
    Never,
    /// A keyword, such as `string`.
    Word(&'static str),
    /// The text of a literal.
    Literal(String),
    /// The type at this index of the list of named types.
    Reference(usize),
    /// An array of one type.
    Array(Box<TypeShape>),
    /// A tuple: the required elements, the optional ones, and the type of the rest.
    Tuple { required: Vec<TypeShape>, optional: Vec<TypeShape>, rest: Option<Box<TypeShape>> },
    /// An object.
    Object { members: Vec<ObjectMember>, others: Option<Box<TypeShape>> },
    /// A union.
    Union(Vec<TypeShape>),
    /// An intersection.
    Intersection(Vec<TypeShape>),
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ObjectMember {
    /// Its name, which may contain any character.
    pub(super) name: String,
    /// `true` if it may be missing.
    pub(super) is_optional: bool,
    pub(super) kind: TypeShape,
    pub(super) about: TypeDoc,
}

/// The documentation of a type or a member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct TypeDoc {
    pub(super) description: Option<String>,
    /// The tags, such as `@format date-time`.
    pub(super) tags: Vec<String>,
}

/// A type with a name. The named types of a schema refer to each other.
#[derive(Clone, Debug)]
pub(super) struct NamedType {
    /// Its name.
    pub(super) name: String,
    pub(super) about: TypeDoc,
    pub(super) kind: TypeShape,
}

impl TypeShape {
    pub(super) const STRING: Self = Self::Word("string");
    pub(super) const NUMBER: Self = Self::Word("number");
    pub(super) const BOOLEAN: Self = Self::Word("boolean");
    pub(super) const NULL: Self = Self::Word("null");

    /// Returns an object type without declared members.
    pub(super) fn any_object() -> Self {
        Self::Object { members: Vec::new(), others: Some(Box::new(Self::Unknown)) }
    }

    /// Returns the union of `all`.
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
        joined(found, Self::Never, Self::Union)
    }

    /// Returns the intersection of `all`.
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
        joined(found, Self::Unknown, Self::Intersection)
    }

    /// Replaces the references that are not inside an object or a list. A type that refers to
    /// itself in this way has no meaning.
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

    /// Calls `found` for each reference that is not inside an object or a list.
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

    /// Returns the type and its number of alternatives. Intersections lose the parts that exceed
    /// the alternatives that compilers accept. `of` returns the number for a reference.
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
            Self::Array(element) => (Self::Array(Box::new(element.bounded(of).0)), 1),
            Self::Tuple { required, optional, rest } => {
                let inner =
                    |all: Vec<Self>| all.into_iter().map(|kind| kind.bounded(of).0).collect();
                let rest = rest.map(|rest| Box::new(rest.bounded(of).0));
                (Self::Tuple { required: inner(required), optional: inner(optional), rest }, 1)
            }
            Self::Object { members, others } => {
                let bounded = |member: ObjectMember| {
                    let kind = member.kind.bounded(of).0;
                    ObjectMember { kind, ..member }
                };
                let members = members.into_iter().map(bounded).collect();
                let others = others.map(|others| Box::new(others.bounded(of).0));
                (Self::Object { members, others }, 1)
            }
            other @ (Self::Unknown | Self::Never | Self::Word(_) | Self::Literal(_)) => (other, 1),
        }
    }
}

/// Returns the type that `join` makes of several different types; `none` without any.
fn joined(
    mut all: Vec<TypeShape>,
    none: TypeShape,
    join: fn(Vec<TypeShape>) -> TypeShape,
) -> TypeShape {
    let mut seen = HashSet::new();
    all.retain(|kind| seen.insert(kind.clone()));
    match all.len() {
        0 => none,
        1 => all.remove(0),
        _ => join(all),
    }
}
