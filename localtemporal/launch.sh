#!/bin/sh
# Becomes the temporal CLI, and leaves a guard that ends it when the process
# that started it is gone. That process holds the other end of a pipe, which the
# kernel closes however it dies; nothing polls.
exec 3<@FIFO@
echo $$ >@PIDFILE@.new && mv @PIDFILE@.new @PIDFILE@
server=$$
(
	trap '' INT HUP
	read -r _ <&3
	kill -INT $server
	seconds=0
	while [ $seconds -lt 10 ] && kill -0 $server; do
		sleep 1
		seconds=$((seconds + 1))
	done
	kill -KILL $server
) </dev/null >/dev/null 2>&1 &
exec 3<&-
# A session of its own: Ctrl-C must reach the worker, which then stops the
# server, and not both at once.
if command -v setsid >/dev/null 2>&1; then
	exec setsid @CLI@ "$@"
fi
exec @CLI@ "$@"
