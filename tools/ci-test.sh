#!/bin/sh
# Runs the tests as CI does. Failed files run once more: a second failure counts as failed, a pass as flaked. Ends with
# the line `N passed, N failed, N flaked`.
cd "$(dirname "$0")/.."
. tools/setup.sh
need_tools

reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT
run_tests() {
  report=$1
  shift
  sh tools/test.sh --reporter=default --reporter=json --outputFile.json="$report" "$@" || true
}
run_tests "$reports/first.json"
failed=$(node tools/testing/verdict.ts tools/testing/flakes.jsonl "$reports/first.json")
# File names contain no spaces.
# shellcheck disable=SC2086
[ -z "$failed" ] || run_tests "$reports/second.json" $failed
node tools/testing/verdict.ts tools/testing/flakes.jsonl "$reports/first.json" "$reports/second.json"
