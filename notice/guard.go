package notice

import (
	"fmt"
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"
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

// special are the networks that are no part of the public internet, by IANA's
// registries, and Azure's own service, which has every machine's secrets.
var special = ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork(), ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix("168.63.129.16/32")))

// public judges an address; of one that carries an IPv4 address through a NAT64,
// that one.
func public(ip netip.Addr) bool {
	ip = ip.WithZone("").Unmap()
	if ssrf.IPv6NAT64Prefix.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	return special.SafeAddr(ip) == nil
}
