#!/bin/sh
# npm test: readies the machine and runs the tests; arguments go to vitest.
cd "$(dirname "$0")/.."
. tools/setup.sh
. tools/test-servers.sh
set_up
need_test_servers
exec vitest run "$@"
