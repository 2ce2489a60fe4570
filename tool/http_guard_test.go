package tool

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGuard(t *testing.T) {
	for _, address := range []string{
		"127.0.0.1", "127.1.2.3", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1",
		"100.100.100.200", "192.0.0.192", "198.18.0.1", "192.0.2.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "168.63.129.16",
		"::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254",
		"fec0::1", "ff02::1", "2002:7f00:1::", "2001::1", "2001:db8::1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1",
	} {
		require.Error(t, guard(nil)("tcp", netip.AddrPortFrom(netip.MustParseAddr(address), 443).String(), nil), address)
	}
	for _, address := range []string{"1.1.1.1", "172.32.0.1", "9.255.255.255", "168.63.129.17", "::ffff:8.8.8.8", "2606:4700::1111", "2a00::1", "64:ff9b::808:808"} {
		require.NoError(t, guard(nil)("tcp", netip.AddrPortFrom(netip.MustParseAddr(address), 443).String(), nil), address)
	}
	allowed := guard([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("::1/128")})
	for address, ok := range map[string]bool{"10.1.2.3:80": true, "[::ffff:10.1.2.3]:80": true, "10.2.0.1:80": false, "[::1]:80": true,
		"127.0.0.1:80": false, "1.1.1.1:80": true, "nonsense": false} {
		require.Equal(t, ok, allowed("tcp", address, nil) == nil, address)
	}
}
