//! The policy for the addresses that metamcp connects to, against requests that a server forges.
//!
//! The operator may declare any URL. A URL that came over the network must be `https` and public:
//! otherwise, a server could make metamcp ask services that only this host reaches. The exceptions
//! follow the declared URL: a server on loopback may name others on loopback, and a private one
//! others on private networks. Link-local addresses, and those of cloud metadata services, are
//! never allowed.
//!
//! The policy is checked for the URL, and again for each address that its name resolves to. Through
//! a proxy, only the URL is checked: the proxy resolves the name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hyper::Uri;

use super::Origin;

/// The policy for the addresses that one client connects to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressPolicy(Option<DiscoveryPolicy>);

/// The policy for URLs that came over the network.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DiscoveryPolicy {
    /// The origin that the operator declared, which is always allowed.
    declared: Option<Origin>,
    /// The scope of the declared host; `None` until its name is resolved.
    scope: Option<AddressScope>,
}

/// The part of the network that an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressScope {
    /// The internet.
    Public,
    /// A private network, or the shared space of a carrier.
    Private,
    /// This host.
    Loopback,
    /// Anything else: link-local, multicast, documentation, metadata services of clouds.
    Reserved,
}

/// The reason why metamcp does not connect to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressRefusal {
    /// The URL is not `https`.
    #[error("a URL that came over the network must be https")]
    Insecure,
    /// The host is not a name that the domain name system knows.
    #[error("its host is neither a name nor an address in the usual form")]
    Malformed,
    /// The address is not on the internet.
    #[error("{address} is {}", scope.in_words())]
    NotPublic {
        /// The address.
        address: IpAddr,
        /// Its scope.
        scope: AddressScope,
    },
}

impl AddressPolicy {
    /// Returns the policy for URLs that the operator declares: all are allowed.
    pub fn declared() -> Self {
        Self(None)
    }

    /// Returns the policy for URLs that came over the network, from the server at `declared` or on
    /// its behalf. The declared origin itself is allowed.
    pub fn discovered(declared: &Uri) -> Self {
        let declared = Origin::of(declared);
        let scope = match &declared {
            None => Some(AddressScope::Public),
            Some(origin) if origin.is_localhost() => Some(AddressScope::Loopback),
            Some(origin) => origin.address().map(AddressScope::of),
        };
        Self(Some(DiscoveryPolicy { declared, scope }))
    }

    /// Returns the declared name that must be resolved before `origin` can be checked.
    pub(super) fn unresolved(&self, origin: &Origin) -> Option<&Origin> {
        let policy = self.0.as_ref().filter(|policy| policy.scope.is_none())?;
        policy.declared.as_ref().filter(|declared| *declared != origin)
    }

    /// Returns the policy after the declared name was resolved to `addresses`. It loosens the policy
    /// only if all of them agree.
    pub(super) fn resolved(&self, addresses: &[IpAddr]) -> Self {
        let Some(policy) = &self.0 else { return self.clone() };
        let first = addresses.first().map(|address| AddressScope::of(*address));
        let scope = first
            .filter(|first| addresses.iter().all(|address| AddressScope::of(*address) == *first))
            .unwrap_or(AddressScope::Public);
        Self(Some(DiscoveryPolicy { scope: Some(scope), ..policy.clone() }))
    }

    /// Checks the scheme and the host of a URL.
    ///
    /// # Errors
    ///
    /// [`AddressRefusal`] with the reason.
    pub fn check(&self, origin: &Origin) -> Result<(), AddressRefusal> {
        let Some(policy) = self.policy_for(origin) else { return Ok(()) };
        let may_be_local = policy.scope == Some(AddressScope::Loopback) && origin.is_loopback();
        if !origin.is_secure() && !may_be_local {
            return Err(AddressRefusal::Insecure);
        }
        match origin.address() {
            Some(address) => self.check_address(origin, address),
            None if origin.is_localhost() && !may_be_local => {
                Err(not_public(IpAddr::V4(Ipv4Addr::LOCALHOST)))
            }
            // Resolvers read `0x7f.1` and `2130706433` as addresses, and so would a proxy.
            None if !is_name(origin.host()) => Err(AddressRefusal::Malformed),
            None => Ok(()),
        }
    }

    /// Checks an address of the host of `origin`.
    ///
    /// # Errors
    ///
    /// [`AddressRefusal`] with the reason.
    pub fn check_address(&self, origin: &Origin, address: IpAddr) -> Result<(), AddressRefusal> {
        let Some(policy) = self.policy_for(origin) else { return Ok(()) };
        let is_allowed = match AddressScope::of(address) {
            // A name below `localhost` leads to this host, and nowhere else.
            AddressScope::Public => !origin.is_localhost(),
            AddressScope::Reserved => false,
            local => policy.scope == Some(local),
        };
        if is_allowed { Ok(()) } else { Err(not_public(address)) }
    }

    /// Returns the policy to apply to `origin`, unless it is allowed anyway.
    fn policy_for(&self, origin: &Origin) -> Option<&DiscoveryPolicy> {
        self.0.as_ref().filter(|policy| policy.declared.as_ref() != Some(origin))
    }
}

fn not_public(address: IpAddr) -> AddressRefusal {
    AddressRefusal::NotPublic { address, scope: AddressScope::of(address) }
}

/// Returns whether a host is a name. Source: WHATWG URL, "ends in a number".
fn is_name(host: &str) -> bool {
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let is_hexadecimal = last.strip_prefix("0x").is_some();
    !last.is_empty()
        && !is_hexadecimal
        && !last.bytes().all(|byte| byte.is_ascii_digit())
        && !host.contains([':', '%'])
}

impl AddressScope {
    /// Returns the scope of an address. An IPv4 address in an IPv6 one counts as itself.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    /// Source: IANA's registry of special-purpose IPv4 addresses.
    fn of_v4(address: Ipv4Addr) -> Self {
        match address.octets() {
            [127, ..] => Self::Loopback,
            // The metadata services of Alibaba and Azure.
            [100, 100, 100, 200] | [168, 63, 129, 16] => Self::Reserved,
            [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Self::Private,
            [0 | 224..=255, ..]
            | [169, 254, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [198, 18 | 19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _] => Self::Reserved,
            _ => Self::Public,
        }
    }

    /// Source: IANA's registry of special-purpose IPv6 addresses.
    fn of_v6(address: Ipv6Addr) -> Self {
        let v4 = |high: u16, low: u16| {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            Self::of_v4(Ipv4Addr::new(a, b, c, d))
        };
        match address.segments() {
            [0, 0, 0, 0, 0, 0, 0, 1] => Self::Loopback,
            // IPv4 in IPv6, and NAT64.
            [0, 0, 0, 0, 0, 0xffff, high, low] => v4(high, low),
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low).or_reserved(),
            // 6to4 sends to the IPv4 address in it.
            [0x2002, high, low, ..] => v4(high, low).or_reserved(),
            // The metadata service of Amazon.
            [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] => Self::Reserved,
            [0xfc00..=0xfdff, ..] => Self::Private,
            // Teredo and other protocols of the IETF, and documentation.
            [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Self::Reserved,
            [0x2000..=0x3fff, ..] => Self::Public,
            _ => Self::Reserved,
        }
    }

    /// Returns the scope of an address that a gateway translates: only the internet is behind it.
    fn or_reserved(self) -> Self {
        if self == Self::Public { self } else { Self::Reserved }
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Public => "public, but its name is that of this host",
            Self::Private => "on a private network",
            Self::Loopback => "on this host",
            Self::Reserved => "reserved for a special purpose",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn policy(declared: &str) -> AddressPolicy {
        AddressPolicy::discovered(&declared.parse().expect("a URL"))
    }

    #[track_caller]
    fn origin(url: &str) -> Origin {
        Origin::of(&url.parse().expect("a URL")).expect("an origin")
    }

    fn allows(policy: &AddressPolicy, url: &str) -> bool {
        policy.check(&origin(url)).is_ok()
    }

    #[test]
    fn a_declared_url_may_be_anything() {
        for url in ["http://127.0.0.1/", "http://10.0.0.1/", "http://169.254.169.254/", "http://a/"]
        {
            assert!(allows(&AddressPolicy::declared(), url));
            assert!(allows(&policy(url), url), "the declared origin itself");
        }
    }

    #[test]
    fn a_discovered_url_is_https_and_public() {
        let policy = policy("https://mcp.example/mcp").resolved(&["8.8.8.8".parse().expect("one")]);
        for url in ["https://login.example/", "https://8.8.8.8/", "https://[2606:4700::1]/"] {
            assert!(allows(&policy, url), "{url}");
        }
        for url in [
            "http://login.example/",
            "https://localhost/",
            "https://a.localhost/",
            "https://127.0.0.1/",
            "https://10.1.2.3/",
            "https://100.64.0.1/",
            "https://169.254.169.254/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[64:ff9b::a00:1]/",
            "https://[2002:7f00:1::]/",
            "https://[fd00::1]/",
            "https://[fe80::1]/",
            "https://[2001:db8::1]/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://127.1/",
            "https://0.0.0.0/",
        ] {
            assert!(!allows(&policy, url), "{url}");
        }
    }

    #[test]
    fn a_server_on_loopback_may_name_others_on_loopback() {
        for declared in ["http://localhost:1/", "http://127.0.0.1:1/", "http://[::1]:1/"] {
            let policy = policy(declared);
            for url in
                ["http://127.0.0.1:2/", "http://localhost:2/", "https://[::1]/", "https://a/"]
            {
                assert!(allows(&policy, url), "{declared} {url}");
            }
            for url in
                ["http://a/", "http://10.0.0.1/", "https://10.0.0.1/", "https://169.254.1.1/"]
            {
                assert!(!allows(&policy, url), "{declared} {url}");
            }
        }
    }

    #[test]
    fn a_private_server_may_name_others_on_private_networks() {
        let by_name = policy("http://mcp.corp/");
        let login = origin("https://login.corp/");
        assert!(by_name.unresolved(&login).is_some());
        assert!(by_name.unresolved(&origin("http://mcp.corp/x")).is_none(), "it is declared");
        let private: IpAddr = "10.0.0.1".parse().expect("an address");
        let public: IpAddr = "8.8.8.8".parse().expect("an address");
        assert!(by_name.check_address(&login, private).is_err());
        assert!(by_name.resolved(&[private, public]).check_address(&login, private).is_err());
        for policy in [by_name.resolved(&[private]), policy("https://192.168.0.1/")] {
            assert_eq!(policy.check_address(&login, private), Ok(()));
            assert!(!allows(&policy, "http://10.0.0.2/"), "not https");
            assert!(!allows(&policy, "https://127.0.0.1/"));
            assert!(!allows(&policy, "https://100.100.100.200/"), "a metadata service");
        }
    }

    #[test]
    fn a_refusal_names_the_address_and_its_scope() {
        let refusal = policy("https://mcp.example/").check(&origin("https://10.0.0.1/"));
        assert_eq!(refusal.expect_err("refused").to_string(), "10.0.0.1 is on a private network");
    }

    proptest! {
        #[test]
        fn no_form_of_a_local_address_is_public(bits: u32) {
            let v4 = Ipv4Addr::from_bits(bits);
            let is_local = v4.is_loopback() || v4.is_private() || v4.is_link_local()
                || v4.is_unspecified() || v4.is_multicast() || v4.is_broadcast()
                || v4.is_documentation();
            let [a, b, c, d] = v4.octets();
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            for form in [
                IpAddr::V4(v4),
                IpAddr::V6(v4.to_ipv6_mapped()),
                IpAddr::V6(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low)),
                IpAddr::V6(Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1)),
            ] {
                prop_assert!(!is_local || AddressScope::of(form) != AddressScope::Public, "{form}");
            }
            prop_assert_ne!(AddressScope::of(v4.to_ipv6_compatible().into()), AddressScope::Public);
        }

        #[test]
        fn only_global_unicast_addresses_of_ipv6_are_public(bits: u128) {
            let v6 = Ipv6Addr::from_bits(bits);
            let is_public = AddressScope::of(v6.into()) == AddressScope::Public;
            let is_embedded = v6.to_ipv4_mapped().is_some() || v6.segments()[..2] == [0x64, 0xff9b];
            prop_assert!(!is_public || is_embedded || v6.segments()[0] & 0xe000 == 0x2000);
        }

        #[test]
        fn a_reserved_address_is_allowed_by_no_declared_server(bits: u32, declared: u32) {
            let address = IpAddr::V4(Ipv4Addr::from_bits(bits));
            let policy = policy(&format!("https://{}/", Ipv4Addr::from_bits(declared)));
            if AddressScope::of(address) == AddressScope::Reserved && bits != declared {
                prop_assert!(policy.check_address(&origin("https://other/"), address).is_err());
            }
        }
    }
}
