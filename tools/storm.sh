#!/bin/sh
# npm run storm: prepares the machine and kills parts of a deployment while it serves sessions.
cd "$(dirname "$0")/.."
. tools/setup.sh
. tools/test-servers.sh
set_up
need_test_servers
exec node test/chaos/storm-main.ts "$@"
