#!/bin/sh
# npm run soak: 2,000 sessions against one service, or as many as the argument says, and a table of what it holds.
cd "$(dirname "$0")/.."
. tools/setup.sh
set_up
exec node tools/bench/load/soak.ts "$@"
