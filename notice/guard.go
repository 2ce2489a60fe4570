package notice

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// guard refuses to connect to an address that is not public. It is asked after the
// name was resolved, with the very address that would be connected to, so that no
// name, no spelling and no later answer of DNS leads around it.
func guard(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %s cannot be judged", address)
	}
	if ip := to.Addr(); !public(ip) {
		return fmt.Errorf("address %s is not public: where that is meant, the target says allow_private: true", ip)
	}
	return nil
}

// reserved4 and reserved6 are the networks that are no part of the public
// internet, by IANA's registries of special-purpose addresses, and what clouds
// keep their machines' secrets at.
var (
	reserved4 = prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
		"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
		"168.63.129.16/32") // the last is Azure's own service
	global6   = netip.MustParsePrefix("2000::/3")                                // unique local, link-local, multicast and 64:ff9b:1::/48 are outside
	reserved6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20") // Teredo and 6to4 carry an IPv4 address
	nat64     = netip.MustParsePrefix("64:ff9b::/96")                            // carries one too, which is judged
)

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

func public(ip netip.Addr) bool {
	ip = ip.WithZone("").Unmap()
	if nat64.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	reserved := reserved4
	if !ip.Is4() {
		if !global6.Contains(ip) {
			return false
		}
		reserved = reserved6
	}
	return !slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(ip) })
}
