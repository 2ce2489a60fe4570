//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

var stopSignal, goSignal os.Signal = syscall.SIGSTOP, syscall.SIGCONT

// apart gives a process a group of its own. Ctrl-C is not for it; and when we die
// while it is stopped, the kernel ends it.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
