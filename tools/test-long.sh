#!/bin/sh
# npm run test-long: the tests of ends and outages at their whole size, which the suite has no time for; with names of
# files, those alone. How long files took is noted in tools/testing/durations.json, by which runs are ordered.
cd "$(dirname "$0")/.."
. tools/setup.sh
need_tools
results=$(mktemp)
trap 'rm -f "$results"' EXIT
status=0
sh tools/test.sh long --reporter=default --reporter=json --outputFile.json="$results" "$@" || status=$?
[ ! -s "$results" ] || node tools/testing/record-durations.ts "$results"
exit "$status"
