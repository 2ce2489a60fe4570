// Command interlock runs Interlock on this machine: a demo of a whole run, and
// a server to try agents against.
package main

import "os"

// version is stamped by the build: -ldflags "-X main.version=...".
var version = "unknown"

func main() {
	a := newApp(os.Stdin, os.Stdout, os.Stderr, os.Environ())
	ctx, stop := a.interruptible()
	code := a.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
