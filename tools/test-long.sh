#!/bin/sh
# npm run test-long: the tests that take minutes each, and those of the other browser runtime; with names of files, those
# alone. The run is noted in tools/testing.
cd "$(dirname "$0")/.."
. tools/setup.sh
need_tools
report=$(mktemp)
trap 'rm -f "$report"' EXIT
status=0
sh tools/test.sh long chromium --reporter=default --reporter=json --outputFile.json="$report" "$@" || status=$?
[ ! -s "$report" ] || node tools/testing/record-run.ts "$report"
exit "$status"
