#!/bin/sh
# npm run test-long: runs the tests that take minutes each, and the tests in full Chromium. File names select files.
# Records the run in tools/testing.
cd "$(dirname "$0")/.."
. tools/setup.sh
. tools/test-servers.sh
need_tools
need_sdk
# shellcheck disable=SC2034
test_servers="podman:podman runc:runc mmdebstrap:mmdebstrap maven:mvn default-jdk-headless:javac"
need_test_servers
report=$(mktemp)
trap 'rm -f "$report"' EXIT
status=0
sh tools/test.sh long chromium whole --reporter=default --reporter=json --outputFile.json="$report" "$@" || status=$?
[ ! -s "$report" ] || node tools/testing/record-run.ts "$report"
exit "$status"
