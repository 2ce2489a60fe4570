# Becomes the server, and leaves a guard that ends it and removes its files when
# the process that started it is gone. That process holds the other end of a
# pipe, which the kernel closes however it dies; nothing polls. A line from the
# pipe is for the guard to go: the server was ended on purpose, and its files stay.
dir=$1
shift
server=$$
((
	trap '' INT HUP TERM
	read -r _ <&3 && exit
	kill -QUIT $server
	seconds=0
	while [ $seconds -lt 20 ] && kill -0 $server; do
		sleep 1
		seconds=$((seconds + 1))
	done
	rm -rf "$dir"
) </dev/null >/dev/null 2>&1 &)
exec 3<&-
exec "$@" >>"$dir/log" 2>&1
