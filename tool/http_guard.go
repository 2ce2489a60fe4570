package tool

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

// public refuses the networks that are no part of the public internet, by IANA's
// registries, and Azure's own service, which has every machine's secrets.
var public = ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork(), ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix("168.63.129.16/32")))

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
		if slices.ContainsFunc(allowed, func(p netip.Prefix) bool { return p.Contains(ip) }) || public.SafeAddr(carried(ip)) == nil {
			return nil
		}
		return fmt.Errorf("address %s is not public and not in AllowPrivate", ip)
	}
}

// carried is the IPv4 address that an IPv6 address of a NAT64 carries; any other is
// itself.
func carried(ip netip.Addr) netip.Addr {
	if !ssrf.IPv6NAT64Prefix.Contains(ip) {
		return ip
	}
	b := ip.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}
