//go:build unix

package pgtest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

//go:embed guard.sh
var guardScript string

// How a server is ended.
const (
	fast  = syscall.SIGINT
	crash = syscall.SIGQUIT
	kill  = syscall.SIGKILL // of its first process alone: the others end when they notice
)

// server is a cluster in a folder of its own. It is reached by a socket there:
// no port can be taken by another.
type server struct {
	bin, dir string
	settings []string
	account  *syscall.Credential // nil: ours

	guard  *os.File // our end of the guard's pipe; nil while the server is stopped
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
}

// initialize makes a cluster and starts it.
func initialize(settings []string) (*server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	s := &server{bin: bin, settings: settings}
	if s.account, err = account(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp(folder(), "interlock-pg-"); err != nil {
		return nil, err
	}
	if err := s.make(); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

func (s *server) make() error {
	if s.account != nil {
		if err := os.Chown(s.dir, int(s.account.Uid), int(s.account.Gid)); err != nil {
			return err
		}
	}
	initdb := s.command(filepath.Join(s.bin, "initdb"), "--pgdata", s.data(), "--username", "postgres", "--auth", "trust",
		"--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return s.start()
}

func (s *server) data() string { return filepath.Join(s.dir, "data") }

// command is a program as the server's user, without our environment: variables
// like PGPORT would be heeded.
func (s *server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + s.bin + ":/usr/bin:/bin", "LC_ALL=C", "HOME=" + s.dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.account, Setpgid: true} // Ctrl-C is not for it
	return cmd
}

// start starts the server and waits until it answers.
func (s *server) start() error {
	args := []string{"-c", guardScript, "sh", s.dir, filepath.Join(s.bin, "postgres"), "-D", s.data(), "-k", s.dir}
	for _, setting := range append([]string{"listen_addresses=", "port=5432", "fsync=off", "full_page_writes=off", "max_connections=200",
		"autovacuum=off", "shared_buffers=64MB"}, s.settings...) {
		args = append(args, "-c", setting)
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = theirs.Close() }()
	cmd := s.command("/bin/sh", args...)
	cmd.ExtraFiles = []*os.File{theirs} // its descriptor 3
	if err := cmd.Start(); err != nil {
		_ = ours.Close()
		return err
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	s.guard, s.cmd, s.exited = ours, cmd, exited
	if err := s.await(); err != nil {
		return errors.Join(err, s.stop(crash))
	}
	return nil
}

// await returns when the server answers, or has ended.
func (s *server) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.dsn())
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.exited:
			return fmt.Errorf("the server has ended:\n%s", s.log())
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w\n%s", err, s.log())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop ends the server; its files stay. A stopped one stays as it is.
func (s *server) stop(how syscall.Signal) error {
	if s.guard == nil {
		return nil
	}
	_ = s.cmd.Process.Signal(how) // it may have ended by itself
	var err error
	select {
	case <-s.exited:
	case <-time.After(timeout):
		err = fmt.Errorf("the server does not end:\n%s", s.log())
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
	_, _ = s.guard.WriteString("stopped\n")
	_ = s.guard.Close()
	s.guard = nil
	return err
}

// remove ends the server and deletes all of it.
func (s *server) remove() {
	_ = s.stop(crash)
	_ = os.RemoveAll(s.dir)
}

func (s *server) log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return string(text[max(0, len(text)-4000):])
}

// dsn is that of the database "postgres", from which others are made.
func (s *server) dsn() string {
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/postgres",
		RawQuery: url.Values{"host": {s.dir}, "port": {"5432"}, "sslmode": {"disable"}}.Encode()}
	return u.String()
}

// binaries is the folder of initdb and postgres: by PATH, or where packages put them.
func binaries() (string, error) {
	var folders []string
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if target, err := filepath.EvalSymlinks(initdb); err == nil {
			folders = append(folders, filepath.Dir(target))
		}
		folders = append(folders, filepath.Dir(initdb))
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin"} {
		found, _ := filepath.Glob(pattern)
		slices.Reverse(found) // the newest first
		folders = append(folders, found...)
	}
	for _, f := range folders {
		if executable(filepath.Join(f, "initdb")) && executable(filepath.Join(f, "postgres")) {
			return f, nil
		}
	}
	return "", missing("there is no PostgreSQL server here (initdb and postgres, on PATH or in /usr/lib/postgresql/*/bin): " +
		"install one, as by apt-get install postgresql, or name one by its URL in " + variable)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// account is whom the server runs as: it refuses to be root's.
func account() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, missing("PostgreSQL does not run as root, and there is no user postgres: make one, or run the tests as another user")
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// folder is where the clusters are: the usual one for temporary files, if the
// server's user gets there and the path of a socket in it is not too long.
func folder() string {
	const longest = 60
	dir := os.TempDir()
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if info, err := os.Stat(at); err != nil || info.Mode()&0o001 == 0 || len(dir) > longest {
			return "/tmp"
		}
	}
	return dir
}
