#!/bin/sh
# npm run mutate: changes sources one small step at a time, and prints which changes no test notices.
cd "$(dirname "$0")/.."
. tools/setup.sh
. tools/test-servers.sh
set_up
need_test_servers
exec node tools/mutate.ts "$@"
