#!/usr/bin/env bash
# Fuzzes every decoder that has a fuzz test, two at a time, each for $1 (60s).
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-60s}

one() {
  local folder=$1 name=$2 time=$3 log
  log=$(mktemp)
  trap 'rm -f "$log"' RETURN
  echo "fuzz $name in $folder for $time"
  if ! go test "$folder" -run "^$name\$" -fuzz "^$name\$" -fuzztime "$time" -parallel 1 >"$log" 2>&1; then
    cat "$log"
    return 1
  fi
}
export -f one

targets() {
  grep -rHoE '^func Fuzz[A-Za-z]+' --include='*_test.go' --exclude-dir=node_modules . | sed -E "s|/[^/]+:func (Fuzz.*)| \\1 $time|"
}
targets | xargs -P2 -L1 bash -c 'one "$@"' one
