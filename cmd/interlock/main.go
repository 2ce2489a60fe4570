// Command interlock starts, reads and steers runs, decides gates, migrates the
// store, and runs Interlock on this machine to try it: a demo of a whole run, a
// server, a worker with the sample agents.
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
