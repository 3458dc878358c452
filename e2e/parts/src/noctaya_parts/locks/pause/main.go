// Pause holds the namespaces of a pod: it sleeps, and reaps what the pod's containers leave behind.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

var version = "unknown"

func main() {
	if len(os.Args) > 1 {
		fmt.Println("pause", version)
		return
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for {
		reap()
		if got := <-signals; got != syscall.SIGCHLD {
			return
		}
	}
}

// Signals that come close together are one: take every child that has ended.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err != nil && err != syscall.EINTR || err == nil && pid <= 0 {
			return
		}
	}
}
