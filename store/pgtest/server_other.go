//go:build !unix

package pgtest

// How a server is ended.
const (
	fast = iota
	crash
	kill
)

// server is for systems where pgtest can start one.
type server struct{}

func initialize([]string) (*server, error) {
	return nil, missing("pgtest starts no PostgreSQL on this system: name one by its URL in " + variable)
}

func binaries() (string, error) { return "", missing("no server of its own on this system") }

func (*server) start() error   { return nil }
func (*server) stop(int) error { return nil }
func (*server) remove()        {}
func (*server) dsn() string    { return "" }
