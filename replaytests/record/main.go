// Command record records the histories of the replay tests: real runs against a
// local Temporal, one file each.
//
//	go run ./replaytests/record [-out replaytests/testdata] [-only name] [-overwrite reason]
//
// A file that exists is kept, since it says what the code did when it was
// recorded. -overwrite records it anew, for the reason given, which belongs in
// the commit; from 0.1 on histories are only ever added.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"interlock/localtemporal"
)

// scenario is one history to record, and for a bad one what the failure of its
// replay must contain.
type scenario struct {
	name string
	want string
	run  func(ctx context.Context, w *world) (address string, err error)
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		fail(serveUntilStdinCloses(os.Args[2:]))
		return
	}
	out := flag.String("out", filepath.Join("replaytests", "testdata"), "folder of the histories")
	only := flag.String("only", "", "record this one only")
	overwrite := flag.String("overwrite", "", "record existing files anew, for this `reason`")
	flag.Parse()
	if flag.NArg() > 0 {
		fail(fmt.Errorf("unexpected argument %q", flag.Arg(0)))
	}
	fail(record(context.Background(), *out, *only, *overwrite))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func record(ctx context.Context, out, only, overwrite string) (err error) {
	todo, err := plan(out, only, overwrite)
	if err != nil || len(todo) == 0 {
		return err
	}
	server, err := localtemporal.Start(ctx, localtemporal.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	var errs []error
	for _, s := range todo {
		if err := recordOne(ctx, server.Address(), out, s); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
		}
	}
	return errors.Join(errs...)
}

// plan says what is to be recorded, and what is kept.
func plan(out, only, overwrite string) ([]scenario, error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	var todo []scenario
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.name)
		if only != "" && only != s.name {
			continue
		}
		_, err := os.Stat(filepath.Join(out, s.name+".json"))
		switch {
		case err == nil && overwrite == "":
			fmt.Printf("%-20s kept; -overwrite records it anew\n", s.name)
			continue
		case err == nil:
			fmt.Printf("%-20s is recorded anew: %s\n", s.name, overwrite)
		case !errors.Is(err, os.ErrNotExist):
			return nil, err
		}
		todo = append(todo, s)
	}
	if only != "" && !strings.Contains(" "+strings.Join(names, " ")+" ", " "+only+" ") {
		return nil, fmt.Errorf("there is no %q; there are %s", only, strings.Join(names, ", "))
	}
	return todo, nil
}

func recordOne(ctx context.Context, address, out string, s scenario) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	w, err := newWorld(ctx, address, s.name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	run, err := s.run(ctx, w)
	if err != nil {
		return err
	}
	path := filepath.Join(out, s.name+".json")
	events, size, err := w.save(ctx, run, path)
	if err != nil {
		return err
	}
	if s.want != "" {
		if err := os.WriteFile(filepath.Join(out, s.name+".want"), []byte(s.want+"\n"), 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%-20s %3d events, %d bytes\n", s.name, events, size)
	return nil
}
