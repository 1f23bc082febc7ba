//! What a type is made of. Pure.

/// A type of TypeScript.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    /// Anything, to be looked at first.
    Unknown,
    /// Nothing at all.
    Never,
    /// One with a name of its own: `null`, `boolean`, `number` or `string`.
    Word(&'static str),
    /// One value, as it is written.
    Literal(String),
    /// So many of one kind.
    Array(Box<Type>),
    /// One after the other; whether each may be missing.
    Tuple(Vec<(Type, bool)>, Option<Box<Type>>),
    /// What has properties.
    Object(Vec<Property>, Option<Box<Type>>),
    /// One of them.
    Union(Vec<Type>),
    /// All of them at once.
    Intersection(Vec<Type>),
    /// One that is declared by this name.
    Named(String),
}

/// A property.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Property {
    pub(super) name: String,
    pub(super) is_optional: bool,
    pub(super) value: Type,
    /// What the schema says in words.
    pub(super) description: Option<String>,
    /// What it says that no type can.
    pub(super) notes: Vec<String>,
}

impl Type {
    /// Returns what is one of these.
    pub(super) fn union(types: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Vec::new();
        for found in types {
            match found {
                Self::Never => {}
                Self::Unknown => return Self::Unknown,
                Self::Union(inner) => all.extend(inner),
                found => all.push(found),
            }
        }
        one_of(all, Self::Never, Self::Union)
    }

    /// Returns what is all of these.
    pub(super) fn intersection(types: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Vec::new();
        for found in types {
            match found {
                Self::Unknown => {}
                Self::Never => return Self::Never,
                Self::Intersection(inner) => all.extend(inner),
                found => all.push(found),
            }
        }
        one_of(all, Self::Unknown, Self::Intersection)
    }

    /// Returns the names that the type is the same as, or a part of that: a type must not be made of
    /// itself in this way.
    pub(super) fn bare_names(&self) -> Vec<&str> {
        match self {
            Self::Named(name) => vec![name],
            Self::Union(types) | Self::Intersection(types) => {
                types.iter().flat_map(Self::bare_names).collect()
            }
            Self::Unknown
            | Self::Never
            | Self::Word(_)
            | Self::Literal(_)
            | Self::Array(_)
            | Self::Tuple(..)
            | Self::Object(..) => Vec::new(),
        }
    }

    /// Takes a name out that the type must not be the same as.
    pub(super) fn without_bare(self, name: &str) -> Self {
        match self {
            Self::Named(found) if found == name => Self::Unknown,
            Self::Union(types) => {
                Self::union(types.into_iter().map(|found| found.without_bare(name)))
            }
            Self::Intersection(types) => {
                Self::intersection(types.into_iter().map(|found| found.without_bare(name)))
            }
            other @ (Self::Unknown
            | Self::Never
            | Self::Word(_)
            | Self::Literal(_)
            | Self::Array(_)
            | Self::Tuple(..)
            | Self::Object(..)
            | Self::Named(_)) => other,
        }
    }
}

/// Leaves out what is there twice.
fn one_of(all: Vec<Type>, none: Type, many: impl FnOnce(Vec<Type>) -> Type) -> Type {
    let mut unique: Vec<Type> = Vec::new();
    for found in all {
        if !unique.contains(&found) {
            unique.push(found);
        }
    }
    match unique.len() {
        0 => none,
        1 => unique.swap_remove(0),
        _ => many(unique),
    }
}
