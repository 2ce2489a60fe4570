#!/usr/bin/env bash
# Usage: scripts/temporal.sh TARGET
#
# Provides the temporal CLI as TARGET: a link to the one that
# INTERLOCK_TEMPORAL_CLI names, else whatever TARGET is already, else a link to
# the one on PATH, else a build of the pinned version. Talks on stderr only.
# Interrupt it at any time: TARGET is only ever replaced as a whole.
set -euo pipefail

# The last version that `go install` can build: later ones have replace directives.
readonly package=github.com/temporalio/cli/cmd/temporal@v1.5.1
readonly target=${1:?usage: scripts/temporal.sh TARGET}

say() { echo "temporal: $*" >&2; }

usable() { [[ -f $1 && -x $1 ]]; }

link() {
	local fresh=$target.$$
	ln -sfn "$1" "$fresh"
	mv -f "$fresh" "$target"
}

mkdir -p "$(dirname "$target")"

if [[ -n ${INTERLOCK_TEMPORAL_CLI:-} ]]; then
	if ! usable "$INTERLOCK_TEMPORAL_CLI"; then
		say "INTERLOCK_TEMPORAL_CLI names $INTERLOCK_TEMPORAL_CLI, which is no executable file"
		exit 1
	fi
	# The target itself may be named, and must not become a link to itself.
	if ! [[ $INTERLOCK_TEMPORAL_CLI -ef $target ]]; then
		link "$(cd "$(dirname "$INTERLOCK_TEMPORAL_CLI")" && pwd)/$(basename "$INTERLOCK_TEMPORAL_CLI")"
	fi
	exit 0
fi

if usable "$target"; then
	exit 0
fi

if found=$(type -P temporal); then
	link "$(cd "$(dirname "$found")" && pwd)/temporal"
	say "using $found"
	exit 0
fi

say "none found; building $package. This takes about 10 CPU-minutes, once."
say "(To use another: put temporal on PATH, or name it in INTERLOCK_TEMPORAL_CLI.)"

# In the target's folder, so that the last step is a rename within one disk.
work=$(cd "$(dirname "$target")" && mktemp -d "$PWD/.temporal.XXXXXX")
build=
cleanup() {
	trap - EXIT
	if [[ -n $build ]]; then
		kill -TERM -- "-$build" 2>/dev/null || true
		wait "$build" 2>/dev/null || true
	fi
	rm -rf "$work"
}
trap cleanup EXIT
trap 'say "interrupted"; exit 130' INT
trap 'say "terminated"; exit 143' TERM HUP

# From an empty folder: no module of ours takes part, and none of ours changes.
mkdir "$work/empty"
set -m # a process group of its own, so that cleanup reaches the compilers too
(cd "$work/empty" && GOBIN=$work GOWORK=off GOFLAGS=-mod=mod exec go install "$package") </dev/null >&2 &
build=$!
set +m

begun=$SECONDS
next=30
while kill -0 "$build" 2>/dev/null; do
	sleep 1
	if ((SECONDS - begun >= next)); then
		say "still building ($((SECONDS - begun)) s)"
		next=$((next + 30))
	fi
done
if ! wait "$build"; then
	build=
	say "the build failed; see above"
	exit 1
fi
build=
mv -f "$work/temporal" "$target"
say "built in $((SECONDS - begun)) s: $target"
