#!/bin/sh
# npm run mutate: changes sources in small steps, and prints the changes that no test detects.
cd "$(dirname "$0")/.."
. tools/setup.sh
. tools/test-servers.sh
set_up
need_test_servers
exec node tools/mutate.ts "$@"
