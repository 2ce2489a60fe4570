#!/usr/bin/env bash
# Fuzzes every decoder that has a fuzz test, two at a time, each for $1 (60s).
#
# Go before 1.27 may fail a target with nothing but "context deadline exceeded" when
# its time is up while a worker is busy (go.dev/issue/75804). That is the end of the
# time and passes; an input that fails, crashes or hangs is written to testdata/fuzz
# and says so, and fails here whatever else is printed.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-60s}

one() {
  local folder=$1 name=$2 time=$3 log
  log=$(mktemp)
  trap 'rm -f "$log"' RETURN
  echo "fuzz $name in $folder for $time"
  # To minimize one input may take no more than these calls: by default it is a minute,
  # which would be all the time there is.
  if ! go test "$folder" -run "^$name\$" -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 500x -parallel 1 >"$log" 2>&1 && ! time_is_up "$log"; then
    cat "$log"
    return 1
  fi
}

# time_is_up says whether the one complaint of a failed target is that its time is up.
time_is_up() {
  grep -A1 '^--- FAIL: Fuzz' "$1" | tail -n +2 | grep -qx ' *context deadline exceeded' &&
    ! grep -qE 'Failing input written|panic:|^ +--- FAIL' "$1"
}
export -f one time_is_up

targets() {
  grep -rHoE '^func Fuzz[A-Za-z_]+' --include='*_test.go' --exclude-dir=node_modules . | sed -E "s|/[^/]+:func (Fuzz.*)| \\1 $time|"
}
targets | xargs -P2 -L1 bash -c 'one "$@"' one
