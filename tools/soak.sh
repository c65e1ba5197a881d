#!/bin/sh
# npm run soak: runs 2,000 sessions, or the given number, against one service, and prints a table of held resources.
cd "$(dirname "$0")/.."
. tools/setup.sh
set_up
exec node tools/bench/load/soak.ts "$@"
