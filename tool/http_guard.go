package tool

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// guard refuses to connect to an address that is not public and not allowed. It
// is asked after the name was resolved, with the very address that would be
// connected to, so that no name and no later answer of DNS leads around it.
func guard(allowed []netip.Prefix) func(network, address string, c syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("address %s cannot be judged", address)
		}
		ip := to.Addr().WithZone("").Unmap()
		if public(ip) || slices.ContainsFunc(allowed, func(p netip.Prefix) bool { return p.Contains(ip) }) {
			return nil
		}
		return fmt.Errorf("address %s is not public and not in AllowPrivate", ip)
	}
}

// reserved4 and reserved6 are the networks that are no part of the public
// internet, by IANA's registries of special-purpose addresses.
var (
	reserved4 = prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
		"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
		"168.63.129.16/32") // the last is Azure's own service, with every machine's secrets
	global6   = netip.MustParsePrefix("2000::/3")
	reserved6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
	nat64     = netip.MustParsePrefix("64:ff9b::/96") // carries an IPv4 address
)

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

func public(ip netip.Addr) bool {
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
