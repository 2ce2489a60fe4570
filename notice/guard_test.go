package notice

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

func TestPublic(t *testing.T) {
	for _, ip := range []string{"8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"} {
		require.True(t, public(netip.MustParseAddr(ip)), ip)
	}
	for _, ip := range []string{
		"127.0.0.1", "127.9.9.9", "0.0.0.0", "0.1.2.3", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", // private, loopback, unspecified
		"169.254.1.1", "169.254.169.254", "168.63.129.16", "192.0.0.192", "100.64.0.1", "100.100.100.200", // link-local, cloud metadata, CGNAT
		"224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", // multicast, reserved, documentation
		"::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "100::1", "2001:db8::1", // IPv6's own
		"::ffff:127.0.0.1", "::ffff:a00:1", "::ffff:169.254.169.254", // mapped
		"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::808:808", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:7f00:1::", "::127.0.0.1", // embedded
	} {
		require.False(t, public(netip.MustParseAddr(ip)), ip)
	}
}

// names is a server of DNS that answers each query of a name with the next of its
// addresses, the last again and again.
type names struct {
	answers map[string][]string
	asked   map[string]*atomic.Int64
}

func newNames(t *testing.T, answers map[string][]string) *net.Resolver {
	t.Helper()
	n := names{answers, map[string]*atomic.Int64{}}
	for name := range answers {
		n.asked[name] = &atomic.Int64{}
	}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buffer := make([]byte, 4096)
		for {
			size, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if reply, err := n.reply(buffer[:size]); err == nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (n names) reply(query []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	q := m.Questions[0]
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	addresses := n.answers[name]
	if len(addresses) == 0 {
		m.RCode = dnsmessage.RCodeNameError
		return m.Pack()
	}
	at := int64(0)
	if q.Type == dnsmessage.TypeA { // one look-up asks for both types
		at = n.asked[name].Add(1) - 1
	}
	ip := netip.MustParseAddr(addresses[min(at, int64(len(addresses)-1))])
	header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
	switch {
	case ip.Is4() && q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: ip.As4()}}}
	case !ip.Is4() && q.Type == dnsmessage.TypeAAAA:
		m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}}}
	}
	return m.Pack()
}

// However an address that is not public is written, named or led to, nothing is sent
// there.
func TestSend_NowherePrivate(t *testing.T) {
	hits := atomic.Int64{}
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer srv.Close()
	here, err := url.Parse(srv.URL)
	require.NoError(t, err)
	port := here.Port()
	resolver := newNames(t, map[string][]string{
		"loop.example": {"127.0.0.1"}, "loop6.example": {"::1"}, "meta.example": {"169.254.169.254"}, "mapped.example": {"::ffff:7f00:1"},
		"nat64.example": {"64:ff9b::7f00:1"}, "sixtofour.example": {"2002:7f00:1::1"}, "ula.example": {"fd00:ec2::254"},
		"rebinds.example": {"8.8.8.8", "127.0.0.1"},
	})
	s := NewSender(Options{Resolver: resolver, Timeout: 5 * time.Second})
	look, err := resolver.LookupHost(t.Context(), "rebinds.example")
	require.NoError(t, err)
	require.Equal(t, []string{"8.8.8.8"}, look, "whoever looked first would have let it pass")
	for _, host := range []string{
		"127.0.0.1", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:0001]", "10.0.0.1", "169.254.169.254", "[fd00:ec2::254]",
		"[fe80::1%25lo]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
		"loop.example", "LOOP.example", "loop.example.", "loop6.example", "meta.example", "mapped.example", "nat64.example", "sixtofour.example", "ula.example", "rebinds.example",
	} {
		target := hook("http://" + host + ":" + port + "/S3CR3T")
		target.AllowPrivate = false
		_, err := s.Send(t.Context(), target, some())
		require.ErrorContains(t, failure(t, err), "is not public", host)
	}
	// Spellings that are no address for Go are names, which some resolvers take for
	// one; the guard sees the address all the same, or there is none.
	for _, host := range []string{"2130706433", "0x7f000001", "0177.0.0.1", "127.1", "localhost"} {
		target := hook("http://" + host + ":" + port)
		target.AllowPrivate = false
		_, err := NewSender(Options{Timeout: 5 * time.Second}).Send(t.Context(), target, some())
		failure(t, err)
	}
	require.Zero(t, hits.Load())

	// A target that is allowed is reached by the same name; a redirect to one is not
	// followed, even so.
	_, err = s.Send(t.Context(), hook("http://loop.example:"+port), some())
	require.NoError(t, err)
	require.EqualValues(t, 1, hits.Load())
	away := httptest.NewServer(http.RedirectHandler(srv.URL+"/S3CR3T", http.StatusTemporaryRedirect))
	defer away.Close()
	_, err = s.Send(t.Context(), hook(away.URL), some())
	require.ErrorContains(t, failure(t, err), "it redirects")
	require.EqualValues(t, 1, hits.Load())

	m := Target{Name: "m", Kind: Mail, SMTP: "loop.example:" + port, From: "a@b.example", To: []string{"c@d.example"}}
	_, err = s.Send(t.Context(), m, some())
	require.ErrorContains(t, failure(t, err), "is not public")
}
