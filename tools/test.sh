#!/bin/sh
# npm test: readies the machine and runs the tests; arguments go to vitest.
cd "$(dirname "$0")/.."
. tools/setup.sh
set_up
exec vitest run "$@"
