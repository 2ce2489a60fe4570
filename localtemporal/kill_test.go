package localtemporal

import (
	"net"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
)

// A server that was killed goes on from its file, at the same port.
func TestKill(t *testing.T) {
	file := filepath.Join(t.TempDir(), "temporal.db")
	s, err := Start(t.Context(), Options{DBFile: file})
	require.NoError(t, err)
	_, err = s.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "w", TaskQueue: "nobody"}, "any")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(s.Address())
	require.NoError(t, err)
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	s.Kill()
	_, err = net.Dial("tcp", s.Address())
	require.Error(t, err)
	require.NoError(t, s.Stop())
	again, err := Start(t.Context(), Options{DBFile: file, Port: n})
	require.NoError(t, err)
	t.Cleanup(func() { _ = again.Stop() })
	require.Equal(t, s.Address(), again.Address())
	_, err = again.Client().DescribeWorkflow(t.Context(), "w", "")
	require.NoError(t, err)
}
